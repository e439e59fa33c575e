#include "onetap/runtime/reference.h"

#include "onetap/base/fail.h"
#include "onetap/kernels/reference.h"
#include "onetap/runtime/layer.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace onetap {
namespace {

using Values = std::vector<float>;

constexpr int64_t kMaxLive = int64_t{1} << 32;

Values run_node(const TapNet& net, const Node& node, const std::vector<const Values*>& inputs) {
  const Values& x = *inputs[0];
  const Shape& in_shape = net.graph.source(node).shape;
  Values y(static_cast<size_t>(element_count(node.shape)));
  const auto channels = [&] { return static_cast<int64_t>(net.tensors(node).weight.count()); };
  const auto count = static_cast<int64_t>(x.size());
  switch (node.op) {
    case Op::kConv:
    case Op::kTapConv:
      reference::conv(conv_shape(net.graph, node), conv_weights(net, node), x.data(), y.data());
      break;
    case Op::kLinear:
      reference::linear(count, node.out, floats_of(node, net.tensors(node).weight),
                        floats_of(node, net.tensors(node).bias), x.data(), y.data());
      break;
    case Op::kAffine:
      reference::affine(channels(), count / channels(), floats_of(node, net.tensors(node).weight),
                        floats_of(node, net.tensors(node).bias), x.data(), y.data());
      break;
    case Op::kAvgPool:
    case Op::kMaxPool:
      reference::pool(pool_shape(net.graph, node), x.data(), y.data());
      break;
    case Op::kGlobalAvgPool:
      reference::global_mean(node.shape[0], count / node.shape[0], x.data(), y.data());
      break;
    case Op::kSubsample:
      subsample(node, in_shape, x.data(), in_shape[1] * in_shape[2], y.data(), node.shape[1] * node.shape[2]);
      break;
    case Op::kFlatten:
      y = x;
      break;
    case Op::kRelu:
      std::transform(x.begin(), x.end(), y.begin(), [](float value) { return std::max(value, 0.0f); });
      break;
    case Op::kAdd:
      for (const Values* input : inputs) {
        std::transform(y.begin(), y.end(), input->begin(), y.begin(), std::plus<float>());
      }
      break;
    case Op::kConcat: {
      auto to = y.begin();
      for (const Values* input : inputs) to = std::copy(input->begin(), input->end(), to);
      break;
    }
    default:
      fail("[runtime] {}: op without an executor", node.name);
  }
  return y;
}

}  // namespace

std::vector<float> run_reference(const TapNet& net, const float* image) {
  const std::vector<Node>& nodes = net.graph.nodes();
  std::unordered_map<std::string, size_t> last_use;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& input : nodes[i].inputs) last_use[input] = i;
  }
  last_use[net.graph.output()] = nodes.size();

  std::unordered_map<std::string, Values> values;
  int64_t live = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    live += element_count(node.shape);
    if (live > kMaxLive) fail_usage("[runtime] {} needs more than 2^32 values at once", net.graph.name());
    if (node.op == Op::kInput) {
      values[node.name].assign(image, image + element_count(node.shape));
      continue;
    }
    std::vector<const Values*> inputs;
    for (const std::string& input : node.inputs) inputs.push_back(&values.at(input));
    Values result = run_node(net, node, inputs);
    values[node.name] = std::move(result);
    for (const std::string& input : node.inputs) {
      if (last_use[input] != i || values.count(input) == 0) continue;
      live -= element_count(net.graph.node(input).shape);
      values.erase(input);
    }
  }
  return std::move(values.at(net.graph.output()));
}

}  // namespace onetap
