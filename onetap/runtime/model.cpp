#include "onetap/runtime/model.h"

#include "onetap/base/naming_file.h"
#include "onetap/runtime/int8_model.h"
#include "onetap/runtime/layer.h"
#include "onetap/runtime/steps.h"
#include "onetap/tap/tap_file.h"

#include <fmt/format.h>

namespace onetap {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

// Multiply-adds for one image where every position is visited.
int64_t dense_conv_macs(const ConvShape& shape) {
  return shape.out * shape.in_per_group() * shape.area() * shape.out_h() * shape.out_w();
}

}  // namespace

Model::Layer::Layer() = default;
Model::Layer::Layer(Layer&&) noexcept = default;
Model::Layer::~Layer() = default;
Model::~Model() = default;

Model::Model(const TapNet& net, const ModelOptions& options)
    : graph_(net.graph),
      classes_(net.classes),
      pixels_(net.pixels),
      kernels_(&find_kernels(options.target, net.is_int8() ? DType::kI8 : DType::kF32)),
      float_kernels_(net.is_int8() ? &find_kernels(kernels_->int8->float_target) : kernels_),
      memory_need_(net.graph.name(), memory_limit(options.memory_limit)) {
  check_tap_net(net);
  if (net.is_int8()) {
    PlannedInt8 planned = plan_int8_quads(net, graph_);
    plan_ = std::move(planned.plan);
    int8_ = std::move(planned.model);
  } else {
    plan_ = plan_execution(graph_, plan_options());
  }
  input_floats_ = element_count(input_shape());
  output_floats_ = element_count(output_shape());
  for (const PlannedStep& step : plan_.steps) {
    layers_.emplace_back();
    if (int8_ != nullptr) layers_.back().int8 = std::make_unique<Int8Layer>();
    layers_.back().kind = &find_step(*step.node, int8_ != nullptr ? DType::kI8 : plan_.value(step.output).dtype);
  }
  build_layers(net, options);
  gather_streams();
}

// What they need is added up and checked before any of it is taken; scratch is known once a layer is built.
void Model::build_layers(const TapNet& net, const ModelOptions& options) {
  TuneCache tuned;
  const auto source = [&](size_t i) {
    return LayerSource{net, *plan_.steps[i].node, *kernels_, options, tuned, plan_, i, int8_.get(), *float_kernels_};
  };
  memory_need_.add(input_floats_ * kFloat, fmt::format("an image of {}", shape_text(input_shape())));
  memory_need_.add(output_floats_ * kFloat, fmt::format("outputs of {}", shape_text(output_shape())));
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].kind->layer_bytes == nullptr) continue;
    memory_need_.add(layers_[i].kind->layer_bytes(source(i)),
                     fmt::format("weights and tables of layer '{}'", plan_.steps[i].node->name));
  }
  check_memory(1, 1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    if (layer.kind->prepare != nullptr) layer.kind->prepare(source(i), layer);
    int64_t scratch = layer.conv != nullptr ? layer.conv->scratch_floats() * kFloat : 0;
    if (layer.planes != nullptr) scratch = layer.planes->scratch_floats() * kFloat;
    if (layer.int8 != nullptr) scratch = layer.int8->scratch_bytes;
    if (scratch <= scratch_bytes_) continue;
    scratch_bytes_ = scratch;
    most_scratch_ = plan_.steps[i].node;
  }
  check_memory(1, 1);
  if (options.tune) tuned.save();
}

// All convolutions' streams behind each other: together they fit on huge pages.
void Model::gather_streams() {
  int64_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.conv != nullptr ? layer.conv->stream_bytes() : 0;
  streams_ = aligned_array<std::byte>(bytes);
  std::byte* to = streams_.get();
  for (const Layer& layer : layers_) {
    if (layer.conv == nullptr) continue;
    layer.conv->move_streams(to);
    to += layer.conv->stream_bytes();
  }
}

void Model::check_memory(int64_t arenas, int64_t threads) const {
  MemoryNeed need = memory_need_;
  need.add(arenas * arena_bytes(), fmt::format("values around layer '{}'", plan_.peak->name));
  if (most_scratch_ != nullptr) {
    need.add(threads * scratch_bytes(), fmt::format("scratch of layer '{}'", most_scratch_->name));
  }
  need.check();
}

std::shared_ptr<const Model> Model::open(const std::filesystem::path& path, const ModelOptions& options) {
  TapNet net = read_tap(path);
  return naming_file(path, [&] { return std::make_shared<const Model>(std::move(net), options); });
}

int64_t Model::step_macs(size_t step) const {
  const Layer& layer = layers_[step];
  if (layer.int8 != nullptr && layer.int8->conv != nullptr) return layer.int8->conv->macs();
  if (layer.conv != nullptr) return layer.conv->macs();
  // What a shift does is to copy.
  if (layer.planes != nullptr) return plan_.steps[step].node->op == Op::kShift ? 0 : layer.planes->macs();
  if (plan_.steps[step].node->op != Op::kLinear) return 0;
  return plan_.value(plan_.steps[step].inputs[0]).channels * plan_.value(plan_.steps[step].output).channels;
}

int64_t Model::macs() const {
  int64_t total = 0;
  for (size_t i = 0; i < layers_.size(); ++i) total += step_macs(i);
  return total;
}

int64_t Model::dense_macs() const {
  int64_t total = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Node& node = *plan_.steps[i].node;
    const bool is_conv = node.op == Op::kConv || node.op == Op::kTapConv;
    total += is_conv ? dense_conv_macs(conv_shape(graph_, node)) : step_macs(i);
  }
  return total;
}

int64_t Model::weight_bytes() const {
  int64_t total = 0;
  for (const Layer& layer : layers_) {
    total += static_cast<int64_t>(layer.weight.size() + layer.bias.size()) * kFloat;
    if (layer.conv != nullptr) total += layer.conv->weight_bytes();
    if (layer.planes != nullptr) total += layer.planes->weight_bytes();
    if (layer.int8 == nullptr) continue;
    total += static_cast<int64_t>(layer.int8->linear.size() + layer.int8->linear_start.size() * sizeof(int32_t));
    if (layer.int8->conv != nullptr) total += layer.int8->conv->weight_bytes();
  }
  return total;
}

}  // namespace onetap
