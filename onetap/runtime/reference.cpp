#include "onetap/runtime/reference.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/graph/shift.h"
#include "onetap/graph/uses.h"
#include "onetap/kernels/activations.h"
#include "onetap/kernels/reference.h"
#include "onetap/runtime/layer.h"
#include "onetap/runtime/memory.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace onetap {
namespace {

using Values = std::vector<float>;

// A node, what it reads, and zeros for what it computes.
struct NodeRun {
  const TapNet& net;
  const Node& node;
  const std::vector<const Values*>& inputs;
  Values& y;

  const Values& x() const { return *inputs[0]; }
  int64_t count() const { return static_cast<int64_t>(x().size()); }
  const Shape& in_shape() const { return net.graph.source(node).shape; }
  const LayerTensors& tensors() const { return net.tensors(node); }
  const float* floats(const Tensor& tensor) const { return floats_of(node, tensor); }
};

void compute_conv(const NodeRun& run) {
  reference::conv(conv_shape(run.net.graph, run.node), conv_weights(run.net, run.node), run.x().data(), run.y.data());
}

void compute_linear(const NodeRun& run) {
  reference::linear(run.count(), run.node.out, run.floats(run.tensors().weight), run.floats(run.tensors().bias),
                    run.x().data(), run.y.data());
}

void compute_affine(const NodeRun& run) {
  const int64_t channels = run.node.shape[0];
  reference::affine(channels, run.count() / channels, run.floats(run.tensors().weight), run.floats(run.tensors().bias),
                    run.x().data(), run.y.data());
}

void compute_pool(const NodeRun& run) {
  reference::pool(pool_shape(run.net.graph, run.node), run.x().data(), run.y.data());
}

void compute_global_mean(const NodeRun& run) {
  const int64_t channels = run.node.shape[0];
  reference::global_mean(channels, run.count() / channels, run.x().data(), run.y.data());
}

void compute_subsample(const NodeRun& run) {
  const Shape& in = run.in_shape();
  reference::subsample({in[0], in[1], in[2], run.node.out, run.node.stride.h, run.node.stride.w}, run.x().data(),
                       run.y.data());
}

void compute_shift(const NodeRun& run) {
  const Node& node = run.node;
  const Shape& in = run.in_shape();
  reference::shift({in[0], in[1], in[2], node.kernel.h, node.kernel.w, node.dilation.h, node.dilation.w},
                   shift_codes(node, in[0]).data(), run.x().data(), run.y.data());
}

void compute_active_shift(const NodeRun& run) {
  const Shape& in = run.in_shape();
  reference::active_shift({in[0], in[1], in[2], run.node.stride.h, run.node.stride.w}, run.floats(run.tensors().weight),
                          run.x().data(), run.y.data());
}

void compute_flatten(const NodeRun& run) {
  run.y = run.x();
}

void compute_relu(const NodeRun& run) {
  std::transform(run.x().begin(), run.x().end(), run.y.begin(), [](float value) { return std::max(value, 0.0f); });
}

template <Activation kind>
void compute_activation(const NodeRun& run) {
  activate_all<kind>(run.count(), run.x().data(), run.y.data());
}

void compute_mul(const NodeRun& run) {
  const Values& factor = *run.inputs[1];
  const size_t pixels = run.y.size() / factor.size();  // 1, or those that one factor is for
  for (size_t i = 0; i < run.y.size(); ++i) run.y[i] = run.x()[i] * factor[i / pixels];
}

void compute_pad(const NodeRun& run) {
  const Shape& in = run.in_shape();
  reference::pad({in[0], in[1], in[2], run.node.sides[0], run.node.sides[1], run.node.shape[1], run.node.shape[2]},
                 pad_value(run.node), run.x().data(), run.y.data());
}

void compute_add(const NodeRun& run) {
  for (const Values* input : run.inputs) {
    std::transform(run.y.begin(), run.y.end(), input->begin(), run.y.begin(), std::plus<float>());
  }
}

void compute_concat(const NodeRun& run) {
  auto to = run.y.begin();
  for (const Values* input : run.inputs) to = std::copy(input->begin(), input->end(), to);
}

using NodeFunction = void (*)(const NodeRun& run);

NodeFunction find_function(Op op) {
  static const std::unordered_map<Op, NodeFunction> table = {
      {Op::kConv, compute_conv},
      {Op::kTapConv, compute_conv},
      {Op::kLinear, compute_linear},
      {Op::kAffine, compute_affine},
      {Op::kAvgPool, compute_pool},
      {Op::kMaxPool, compute_pool},
      {Op::kSubsample, compute_subsample},
      {Op::kFlatten, compute_flatten},
      {Op::kRelu, compute_relu},
      {Op::kAdd, compute_add},
      {Op::kConcat, compute_concat},
      {Op::kGlobalAvgPool, compute_global_mean},
      {Op::kShift, compute_shift},
      {Op::kActiveShift, compute_active_shift},
      {Op::kMul, compute_mul},
      {Op::kPad, compute_pad},
      {Op::kRelu6, compute_activation<Activation::kRelu6>},
      {Op::kSigmoid, compute_activation<Activation::kSigmoid>},
      {Op::kHardSigmoid, compute_activation<Activation::kHardSigmoid>},
      {Op::kHardSwish, compute_activation<Activation::kHardSwish>},
      {Op::kSilu, compute_activation<Activation::kSilu>},
  };
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

void check_memory(const Graph& graph, int64_t limit) {
  const Uses uses(graph);
  int64_t live = 0, most = 0;
  const Node* peak = &graph.input();
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    live += element_count(node.shape);
    if (live > most) {
      most = live;
      peak = &node;
    }
    for (const Node* input : uses.ending_at(i)) live -= element_count(input->shape);
    if (uses.last_use(node) == i) live -= element_count(node.shape);
  }
  MemoryNeed need(graph.name(), memory_limit(limit));
  need.add(most * static_cast<int64_t>(sizeof(float)), fmt::format("values around layer '{}'", peak->name));
  need.check();
}

}  // namespace

bool is_in_reference(Op op) {
  return find_function(op) != nullptr;
}

void check_reference(const TapNet& net, int64_t memory_limit) {
  for (const Node& node : net.graph.nodes()) {
    if (node.op == Op::kInput || is_in_reference(node.op)) continue;
    fail("[runtime] expected an op that the reference executor supports, got {} ('{}')", op_info(node.op).name,
         node.name);
  }
  check_memory(net.graph, memory_limit);
}

std::vector<float> run_reference(const TapNet& net, const float* image, int64_t memory_limit) {
  return run_reference(
      net, image, [](const Node&, const Values&) {}, memory_limit);
}

std::vector<float> run_reference(const TapNet& net, const float* image, const VisitNode& visit, int64_t memory_limit) {
  check_reference(net, memory_limit);
  const std::vector<Node>& nodes = net.graph.nodes();
  const Uses uses(net.graph);
  std::unordered_map<std::string, Values> values;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.op == Op::kInput) {
      values[node.name].assign(image, image + element_count(node.shape));
      visit(node, values[node.name]);
      continue;
    }
    std::vector<const Values*> inputs;
    for (const std::string& input : node.inputs) inputs.push_back(&values.at(input));
    Values result(static_cast<size_t>(element_count(node.shape)));
    find_function(node.op)({net, node, inputs, result});
    visit(node, result);
    for (const Node* input : uses.ending_at(i)) values.erase(input->name);
    if (uses.last_use(node) != i) values[node.name] = std::move(result);
  }
  return std::move(values.at(net.graph.output()));
}

}  // namespace onetap
