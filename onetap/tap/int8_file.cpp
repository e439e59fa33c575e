#include "onetap/tap/int8_file.h"

#include "onetap/base/fail.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/tap/codes.h"
#include "onetap/tap/file_limits.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace onetap {
namespace {

// A slash is in no node's name.
constexpr const char* kInt8Weights = "int8/weight";       // I8: the weights that are kept
constexpr const char* kInt8Biases = "int8/bias";          // I16
constexpr const char* kInt8Positions = "int8/positions";  // U8: packed, every layer from a new byte
constexpr const char* kInt8Steps = "int8/step";           // U8, per output
constexpr const char* kInt8Bases = "int8/base";           // F32, per layer
constexpr const char* kInt8Shifts = "int8/bias_shift";    // U8, per layer
constexpr const char* kInt8Values = "int8/value";         // F32, per node: 0 where its value has no scale
constexpr int64_t kMaxWeights = int64_t{1} << 40;         // no sum of sizes comes near 64 bits

// How much of every tensor one layer has.
struct LayerPart {
  Shape weight, bias;
  int64_t kept = 0;      // weights in the file
  size_t positions = 0;  // bytes
  int64_t outputs = 0;
  TapLayout layout;  // of a tap convolution

  LayerPart(const Graph& graph, const Node& node) {
    const LayerShapes shapes = layer_shapes(graph, node);
    weight = shapes.weight;
    bias = shapes.bias;
    kept = element_count(weight);
    outputs = weight[0];
    if (node.op != Op::kTapConv) return;
    layout = tap_layout(graph, node);
    kept -= layout.dropped;
    positions = packed_bytes(static_cast<uint64_t>(layout.codes()), layout.bits());
  }
  int64_t biases() const { return bias.empty() ? 0 : outputs; }

  // Weights, biases, positions, steps, a base and a shift.
  uint64_t bytes() const {
    return static_cast<uint64_t>(kept) + static_cast<uint64_t>(biases()) * sizeof(int16_t) + positions +
           static_cast<uint64_t>(outputs) + sizeof(float) + 1;
  }
};

bool is_scale(float value) {
  return std::isfinite(value) && value >= std::numeric_limits<float>::min();
}

void append(std::string& to, const void* data, size_t bytes) {
  to.append(static_cast<const char*>(data), bytes);
}

// Reads a tensor part by part.
class PartReader {
 public:
  PartReader(const SafetensorsFile& file, const char* name, DType dtype, int64_t count, std::string_view label) {
    if (count == 0) return;
    const TensorView* found = file.find(name);
    if (found == nullptr) fail_data("[tap] expected a tensor '{}', got none ({})", name, label);
    if (found->dtype != dtype || found->shape != Shape{count}) {
      fail_data("[tap] expected {} [{}] for '{}', got {} [{}] ({})", dtype_name(dtype), count, name,
                dtype_name(found->dtype), fmt::join(found->shape, ", "), label);
    }
    at_ = static_cast<const char*>(found->data);
    tensors_ = 1;
  }

  std::string_view take(size_t bytes) {
    const std::string_view part(at_, bytes);
    if (bytes > 0) at_ += bytes;
    return part;
  }
  Tensor take(DType dtype, const Shape& shape) {
    Tensor tensor(dtype, shape);
    if (tensor.bytes() > 0) std::memcpy(tensor.raw(), take(tensor.bytes()).data(), tensor.bytes());
    return tensor;
  }
  template <typename T>
  T take_one() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  size_t tensors() const { return tensors_; }  // that it reads: one or none

 private:
  const char* at_ = nullptr;
  size_t tensors_ = 0;
};

}  // namespace

std::vector<TensorView> int8_views(const TapNet& net, std::deque<std::string>& held) {
  std::string weights, biases, positions, steps, bases, shifts, values;
  for (const Node& node : net.graph.nodes()) {
    const auto value = net.value_scales.find(node.name);
    const float value_scale = value == net.value_scales.end() ? 0.0f : value->second;
    append(values, &value_scale, sizeof(float));
    const auto found = net.layers.find(node.name);
    if (found == net.layers.end() || found->second.weight.dtype() != DType::kI8) continue;
    const LayerTensors& layer = found->second;
    const LayerPart part(net.graph, node);
    if (part.kept == element_count(part.weight)) {
      append(weights, layer.weight.raw(), layer.weight.bytes());
    } else {
      const Tensor kept = kept_weights(part.layout, layer.positions, layer.weight);
      append(weights, kept.raw(), kept.bytes());
    }
    append(biases, layer.bias.raw(), layer.bias.bytes());
    if (node.op == Op::kTapConv) positions += pack_codes(layer.positions, part.layout.bits());
    append(steps, layer.scale.steps.data(), layer.scale.steps.size());
    append(bases, &layer.scale.base, sizeof(float));
    shifts += static_cast<char>(layer.scale.bias_shift);
  }
  std::vector<TensorView> views;
  const auto add = [&](const char* name, DType dtype, std::string&& bytes) {
    if (bytes.empty()) return;
    const auto count = static_cast<int64_t>(bytes.size() / dtype_bytes(dtype));
    views.push_back({name, dtype, {count}, held.emplace_back(std::move(bytes)).data()});
  };
  add(kInt8Weights, DType::kI8, std::move(weights));
  add(kInt8Biases, DType::kI16, std::move(biases));
  add(kInt8Positions, DType::kU8, std::move(positions));
  add(kInt8Steps, DType::kU8, std::move(steps));
  add(kInt8Bases, DType::kF32, std::move(bases));
  add(kInt8Shifts, DType::kU8, std::move(shifts));
  add(kInt8Values, DType::kF32, std::move(values));
  return views;
}

uint64_t int8_bytes(const TapNet& net, const Node& node) {
  const auto found = net.layers.find(node.name);
  const bool has_part = found != net.layers.end() && found->second.weight.dtype() == DType::kI8;
  return sizeof(float) + (has_part ? LayerPart(net.graph, node).bytes() : 0);  // the scale of its value, and the layer
}

bool has_int8_part(const SafetensorsFile& file) {
  return file.find(kInt8Values) != nullptr;
}

size_t read_int8_part(const SafetensorsFile& file, std::string_view label, TapNet& net) {
  std::vector<std::pair<const Node*, LayerPart>> parts;
  int64_t weights = 0, biases = 0, positions = 0, outputs = 0, dropped = 0;
  for (const Node& node : net.graph.nodes()) {
    if (layer_shapes(net.graph, node).weight.empty() || file.find(node.name + ".weight") != nullptr ||
        file.find(node.name + ".signs") != nullptr) {
      continue;
    }
    parts.emplace_back(&node, LayerPart(net.graph, node));
    const LayerPart& part = parts.back().second;
    weights += part.kept;
    biases += part.biases();
    positions += static_cast<int64_t>(part.positions);
    outputs += part.outputs;
    dropped += element_count(part.weight) - part.kept;
    if (weights > kMaxWeights) fail_data("[tap] expected at most {} weights, got {} ({})", kMaxWeights, weights, label);
    // Memory that is not in the file.
    if (dropped > kMaxDroppedWeights) {
      fail_data("[tap] expected at most {} dropped weights in a file, got {} ({}, {})", kMaxDroppedWeights, dropped,
                node.name, label);
    }
  }
  const auto layers = static_cast<int64_t>(parts.size());
  const auto nodes = static_cast<int64_t>(net.graph.nodes().size());
  PartReader weight(file, kInt8Weights, DType::kI8, weights, label),
      bias(file, kInt8Biases, DType::kI16, biases, label), code(file, kInt8Positions, DType::kU8, positions, label),
      step(file, kInt8Steps, DType::kU8, outputs, label), base(file, kInt8Bases, DType::kF32, layers, label),
      shift(file, kInt8Shifts, DType::kU8, layers, label), value(file, kInt8Values, DType::kF32, nodes, label);
  for (const Node& node : net.graph.nodes()) {
    const auto scale = value.take_one<float>();
    if (scale != 0) net.value_scales[node.name] = scale;  // a NaN is no 0, and is refused with its name
  }
  if (net.value_scales.empty()) fail_data("[tap] expected scales of values, got none ({})", label);
  for (const auto& [node, part] : parts) {
    LayerTensors& layer = net.layers[node->name];
    if (node->op == Op::kTapConv) {
      layer.positions = unpack_codes(code.take(part.positions), static_cast<size_t>(part.layout.codes()),
                                     part.layout.bits(), fmt::format("positions of {}, {}", node->name, label));
    }
    if (part.kept == element_count(part.weight)) {
      layer.weight = weight.take(DType::kI8, part.weight);
    } else {
      check_codes(part.layout, layer.positions, node->name);
      if (const int64_t empty = dropped_weights(part.layout, layer.positions); empty != part.layout.dropped) {
        fail_data("[tap] expected {} weights without a position, got {} ({}, {})", part.layout.dropped, empty,
                  node->name, label);
      }
      layer.weight = refill_weights(part.layout, layer.positions, weight.take(DType::kI8, {part.kept}));
    }
    if (!part.bias.empty()) layer.bias = bias.take(DType::kI16, part.bias);
    const std::string_view list = step.take(static_cast<size_t>(part.outputs));
    layer.scale.steps.assign(list.begin(), list.end());
    layer.scale.base = base.take_one<float>();
    layer.scale.bias_shift = shift.take_one<uint8_t>();
  }
  return weight.tensors() + bias.tensors() + code.tensors() + step.tensors() + base.tensors() + shift.tensors() +
         value.tensors();
}

void check_int8_layer(const TapNet& net, const Node& node) {
  const LayerTensors& layer = net.tensors(node);
  if (layer.weight.dtype() == DType::kF32 && (layer.bias.empty() || layer.bias.dtype() == DType::kF32)) {
    if (layer.scale.empty()) return;
    fail_data("[tap] expected no scale of a layer in floats ({})", node.name);
  }
  const bool has_bytes =
      layer.weight.dtype() == DType::kI8 && (layer.bias.empty() || layer.bias.dtype() == DType::kI16);
  if (!has_bytes) {
    fail_data("[tap] expected a weight of I8 and a bias of I16, or F32 for both, got {} and {} ({})",
              dtype_name(layer.weight.dtype()), dtype_name(layer.bias.dtype()), node.name);
  }
  const auto* weights = layer.weight.data<int8_t>();
  if (std::count(weights, weights + layer.weight.count(), std::numeric_limits<int8_t>::min()) > 0) {
    fail_data("[tap] expected weights of -127 to 127, got -128 ({})", node.name);
  }
  const WeightScale& scale = layer.scale;
  if (!is_scale(scale.base)) {
    fail_data("[tap] expected a finite scale of weights above 0, got {} ({})", scale.base, node.name);
  }
  if (scale.bias_shift < 0 || scale.bias_shift > 15) {
    fail_data("[tap] expected a shift of the bias of 0 to 15, got {} ({})", scale.bias_shift, node.name);
  }
  if (static_cast<int64_t>(scale.steps.size()) != layer.weight.shape()[0]) {
    fail_data("[tap] expected scales of {} outputs, got {} ({})", layer.weight.shape()[0], scale.steps.size(),
              node.name);
  }
}

void check_value_scales(const TapNet& net) {
  for (const auto& [name, scale] : net.value_scales) {
    if (net.graph.find(name) == nullptr) fail_data("[tap] expected a scale of a node, got one of '{}'", name);
    if (!is_scale(scale)) fail_data("[tap] expected a finite scale above 0, got {} ({})", scale, name);
  }
}

}  // namespace onetap
