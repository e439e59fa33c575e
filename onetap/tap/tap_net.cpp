#include "onetap/tap/tap_net.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/tap/binary.h"
#include "onetap/tap/codes.h"
#include "onetap/tap/int8_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

void check_tensor(const Node& node, const char* what, const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() != shape) {
    fail_data("[tap] expected {} of shape [{}], got [{}] ({})", what, fmt::join(shape, ", "),
              fmt::join(tensor.shape(), ", "), node.name);
  }
  if (tensor.dtype() != DType::kF32) return;
  const auto* values = tensor.data<float>();
  for (size_t i = 0; i < tensor.count(); ++i) {
    if (!std::isfinite(values[i]))
      fail_data("[tap] expected finite numbers in {}, got {} ({})", what, values[i], node.name);
  }
}

// The graph says how many weights are left out, so that counts and lengths need no tensors.
void check_dropped(const TapLayout& layout, const LayerTensors& tensors, const std::string& layer) {
  const int64_t dropped = dropped_weights(layout, tensors.positions);
  if (dropped != layout.dropped) {
    fail_data("[tap] expected {} weights without a position, got {} ({})", layout.dropped, dropped, layer);
  }
  if (dropped == 0) return;
  if (!dropped_are_zero(layout, tensors.positions, tensors.weight)) {
    fail_data("[tap] expected weights of 0 where positions are empty ({})", layer);
  }
}

// A conv or linear layer has every weight, or one bit of each.
void check_method(const Node& node) {
  const bool has_weights = node.op == Op::kConv || node.op == Op::kLinear;
  if (!has_weights || node.method.is_dense() || is_binary(node)) return;
  fail_data("[tap] expected inference ops alone, got a trainable {} {} '{}'", node.method.name(), op_info(node.op).name,
            node.name);
}

void check_ranges(const TapNet& net) {
  for (const auto& [name, range] : net.value_ranges) {
    if (net.graph.find(name) == nullptr) fail_data("[tap] expected ranges of nodes, got one of '{}'", name);
    if (!std::isfinite(range) || range < 0) {
      fail_data("[tap] expected finite ranges of at least 0, got {} ('{}')", range, name);
    }
  }
}

}  // namespace

void check_pixels(const PixelScale& pixels) {
  for (const float mean : pixels.mean) {
    if (!std::isfinite(mean)) fail_data("[tap] expected a finite mean of pixels, got {}", mean);
  }
  for (const float sd : pixels.sd) {
    if (!std::isfinite(sd) || sd <= 0) fail_data("[tap] expected a finite sd of pixels above 0, got {}", sd);
  }
}

size_t pixel_channel(int64_t channel) {
  return static_cast<size_t>(std::min<int64_t>(channel, static_cast<int64_t>(PixelScale().mean.size()) - 1));
}

float scaled_pixel(const PixelScale& pixels, int64_t channel, int value) {
  const size_t c = pixel_channel(channel);
  return static_cast<float>((value / 255.0 - static_cast<double>(pixels.mean[c])) / static_cast<double>(pixels.sd[c]));
}

bool follows_weight_type(const Node& node) {
  return node.op != Op::kActiveShift;
}

const char* weight_type_name(const TapNet& net) {
  if (net.is_int8()) return "int8";
  return net.weight_type == WeightType::kF16 ? "f16" : "f32";
}

LayerShapes layer_shapes(const Graph& graph, const Node& node) {
  LayerShapes shapes;
  switch (node.op) {
    case Op::kConv:
      shapes.weight = {node.out, in_channels(graph, node) / node.groups, node.kernel.h, node.kernel.w};
      break;
    case Op::kTapConv: {
      const TapLayout layout = tap_layout(graph, node);
      shapes.weight = {layout.outputs, layout.inputs, layout.taps};
      shapes.positions = layout.code_shape();
      break;
    }
    case Op::kLinear:
      shapes.weight = {node.out, in_channels(graph, node)};
      break;
    case Op::kAffine:
      shapes.weight = shapes.bias = {node.shape[0]};
      break;
    case Op::kActiveShift:
      shapes.weight = {node.shape[0], 2};
      break;
    // Without tensors. Each is named, so that a new op with weights does not compile before it has them here.
    case Op::kInput:
    case Op::kBatchNorm:  // of no frozen network
    case Op::kRelu:
    case Op::kRelu6:
    case Op::kSigmoid:
    case Op::kHardSigmoid:
    case Op::kHardSwish:
    case Op::kSilu:
    case Op::kAdd:
    case Op::kMul:
    case Op::kConcat:
    case Op::kPad:
    case Op::kAvgPool:
    case Op::kMaxPool:
    case Op::kGlobalAvgPool:
    case Op::kSubsample:
    case Op::kFlatten:
    case Op::kShift:
      break;
  }
  if (node.bias) shapes.bias = {node.out};
  return shapes;
}

void check_tap_net(const TapNet& net) {
  net.graph.input();
  check_pixels(net.pixels);
  check_value_scales(net);
  size_t with_tensors = 0;
  for (const Node& node : net.graph.nodes()) {
    if (node.op == Op::kBatchNorm) fail_data("[tap] expected inference ops alone, got bn '{}'", node.name);
    check_method(node);
    const LayerShapes shapes = layer_shapes(net.graph, node);
    if (shapes.weight.empty()) continue;
    ++with_tensors;
    const auto found = net.layers.find(node.name);
    if (found == net.layers.end()) fail_data("[tap] expected tensors for '{}', got none", node.name);
    check_tensor(node, "weight", found->second.weight, shapes.weight);
    check_tensor(node, "bias", found->second.bias, shapes.bias);
    if (net.is_int8()) check_int8_layer(net, node);
    if (is_binary(node)) check_binary(found->second.weight, node.name);
    if (node.op == Op::kTapConv) {
      const TapLayout layout = tap_layout(net.graph, node);
      check_codes(layout, found->second.positions, node.name);
      check_dropped(layout, found->second, node.name);
    } else if (!found->second.positions.empty()) {
      fail_data("[tap] expected no positions, got {} ({})", found->second.positions.size(), node.name);
    }
  }
  if (net.layers.size() != with_tensors) {
    fail_data("[tap] expected tensors of {} layers, got {}", with_tensors, net.layers.size());
  }
  check_ranges(net);
  const int64_t outputs = element_count(net.graph.node(net.graph.output()).shape);
  if (!net.classes.empty() && static_cast<int64_t>(net.classes.size()) != outputs) {
    fail_data("[tap] expected names for {} classes, got {}", outputs, net.classes.size());
  }
}

const float* floats_of(const Node& node, const Tensor& tensor) {
  if (tensor.dtype() != DType::kF32) {
    fail_data("[tap] expected tensors of type F32 to compute with, got {} ({})", dtype_name(tensor.dtype()), node.name);
  }
  return tensor.data<float>();
}

Tensor scaled_weight(const LayerTensors& layer) {
  Tensor floats(DType::kF32, layer.weight.shape());
  const auto* bytes = layer.weight.data<int8_t>();
  const size_t per_output = layer.weight.count() / layer.scale.steps.size();
  for (size_t i = 0; i < floats.count(); ++i) {
    floats.data<float>()[i] = static_cast<float>(bytes[i] * layer.scale.of(static_cast<int64_t>(i / per_output)));
  }
  return floats;
}

std::vector<float> dense_weight(const TapNet& net, const Node& node) {
  const LayerTensors& tensors = net.tensors(node);
  const bool is_int8 = tensors.weight.dtype() == DType::kI8 && !tensors.scale.empty();
  const Tensor scaled = is_int8 ? scaled_weight(tensors) : Tensor();
  const float* weight = is_int8 ? scaled.data<float>() : floats_of(node, tensors.weight);
  if (node.op == Op::kTapConv) return spread_weights(tap_layout(net.graph, node), tensors.positions, weight);
  return {weight, weight + tensors.weight.count()};
}

std::vector<int8_t> dense_bytes(const TapNet& net, const Node& node) {
  const LayerTensors& tensors = net.tensors(node);
  const auto* bytes = tensors.weight.data<int8_t>();
  if (node.op != Op::kTapConv) return {bytes, bytes + tensors.weight.count()};
  return spread_weights(tap_layout(net.graph, node), tensors.positions, bytes);
}

Shape dense_shape(const Graph& graph, const Node& node) {
  Shape shape = layer_shapes(graph, node).weight;
  if (node.op != Op::kTapConv) return shape;
  return {shape[0], shape[1], node.kernel.h, node.kernel.w};
}

void update_dropped(TapNet& net, const std::string& name) {
  const Node& node = net.graph.node(name);
  const TapLayout layout = tap_layout(net.graph, node);
  LayerTensors& tensors = net.layers.at(name);
  tensors.weight = refill_weights(layout, tensors.positions, kept_weights(layout, tensors.positions, tensors.weight));
  Method method = node.method;
  net.graph.set_method(name, method.set("dropped", dropped_weights(layout, tensors.positions)));
}

std::vector<int64_t> kept_counts(const TapNet& net, const Node& node) {
  return count_slices(tap_layout(net.graph, node), net.tensors(node).positions);
}

}  // namespace onetap
