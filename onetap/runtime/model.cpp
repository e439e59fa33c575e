#include "onetap/runtime/model.h"

#include "onetap/runtime/choose.h"
#include "onetap/runtime/layer.h"
#include "onetap/runtime/tune_cache.h"
#include "onetap/tap/tap_file.h"

#include <algorithm>

namespace onetap {
namespace {

// Multiply-adds for one image where every position is visited.
int64_t dense_conv_macs(const ConvShape& shape) {
  return shape.out * shape.in_per_group() * shape.area() * shape.out_h() * shape.out_w();
}

}  // namespace

Model::Model(const TapNet& net, const ModelOptions& options)
    : graph_(net.graph),
      classes_(net.classes),
      pixels_(net.pixels),
      kernels_(&find_kernels(options.target, DType::kF32)),
      plan_(plan_execution(graph_)) {
  check_tap_net(net);
  input_floats_ = element_count(input_shape());
  output_floats_ = element_count(output_shape());
  TuneCache cache;
  for (const PlannedStep& step : plan_.steps) {
    const Node& node = *step.node;
    Layer layer;
    if (node.op == Op::kConv || node.op == Op::kTapConv) {
      const ConvShape shape = conv_shape(graph_, node);
      const ConvWeights weights = conv_weights(net, node);
      ConvBlocking blocking =
          options.tune ? cache.find_or_tune(shape, weights, *kernels_) : choose_blocking(shape, *kernels_);
      if (options.dense && !blocking.dense) {
        ConvShape full = shape;
        full.taps = 0;
        blocking = choose_blocking(full, *kernels_);
      }
      layer.conv = std::make_unique<ConvPlan>(shape, weights, blocking, *kernels_);
      scratch_floats_ = std::max(scratch_floats_, layer.conv->scratch_floats());
    } else if (node.op == Op::kLinear || node.op == Op::kAffine) {
      const Tensor& bias = net.tensors(node).bias;
      layer.weight = dense_weight(net, node);
      layer.bias.assign(floats_of(node, bias), floats_of(node, bias) + bias.count());
    } else if (node.op == Op::kAvgPool || node.op == Op::kMaxPool) {
      layer.pool = pool_shape(graph_, node);
    }
    layers_.push_back(std::move(layer));
  }
  if (options.tune) cache.save();
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

std::shared_ptr<const Model> Model::open(const std::filesystem::path& path, const ModelOptions& options) {
  return std::make_shared<const Model>(read_tap(path), options);
}

int64_t Model::step_macs(size_t step) const {
  const Layer& layer = layers_[step];
  if (layer.conv != nullptr) return layer.conv->macs();
  return plan_.steps[step].node->op == Op::kLinear ? static_cast<int64_t>(layer.weight.size()) : 0;
}

int64_t Model::macs() const {
  int64_t total = 0;
  for (size_t i = 0; i < layers_.size(); ++i) total += step_macs(i);
  return total;
}

int64_t Model::dense_macs() const {
  int64_t total = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ConvPlan* conv = layers_[i].conv.get();
    total += conv != nullptr ? dense_conv_macs(conv->shape()) : step_macs(i);
  }
  return total;
}

int64_t Model::weight_bytes() const {
  int64_t total = 0;
  for (const Layer& layer : layers_) {
    total += static_cast<int64_t>(layer.weight.size() + layer.bias.size()) * 4;
    if (layer.conv != nullptr) total += layer.conv->weight_bytes();
  }
  return total;
}

}  // namespace onetap
