#include "onetap/onnx/int8_net.h"

#include "onetap/base/fail.h"
#include "onetap/onnx/layer_facts.h"
#include "onetap/quant/int8_plan.h"
#include "onetap/tap/sparse_to_taps.h"
#include "onetap/tap/tap_file.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {
namespace {

constexpr int kMaxStep = 255, kMaxBiasShift = 15;

class Int8Builder {
 public:
  Int8Builder(const ImportedNet& net, const ImportedBytes& bytes, const std::string& label)
      : net_(net), bytes_(bytes), label_(label) {
    const auto facts = net.metadata.find(kInt8FactsKey);
    if (facts != net.metadata.end()) facts_ = parse_layer_facts(facts->second, kInt8FactsKey, label);
  }

  TapNet build() {
    made_.graph = Graph(net_.graph.name());
    for (const Node& node : net_.graph.nodes()) add(node);
    made_.graph.set_output(net_.graph.output());
    for (const auto& [name, rounding] : bytes_.roundings) made_.value_scales[name] = rounding.scale;
    if (net_.metadata.count("mean") > 0 && net_.metadata.count("sd") > 0) {
      read_tap_metadata(net_.metadata, label_, made_);
    }
    if (facts_.empty()) sparse_to_taps(made_);
    check();
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse(const std::string& where, const std::string& expected) const {
    fail_data("[onnx] {}: expected {}: the model is not quantized as onetap's exports are ({})", where, expected,
              label_);
  }

  void add(Node node) {
    const auto weight = net_.tensors.find(node.name + ".weight");
    if (weight == net_.tensors.end()) {
      made_.graph.add(std::move(node));
      return;
    }
    if (const auto facts = facts_.find(node.name); facts != facts_.end() && facts->second.shift) {
      const Shape& in = net_.graph.node(node.inputs[0]).shape;
      auto shift = as_shift(node, *facts->second.shift, in, weight->second);
      if (!shift) {
        fail_data("[onnx] metadata '{}': expected the shift of '{}' as its weights have it, got another ({})",
                  kInt8FactsKey, node.name, label_);
      }
      made_.graph.add(std::move(*shift));
      return;
    }
    LayerTensors tensors;
    if (const auto found = bytes_.layers.find(node.name); found != bytes_.layers.end()) {
      tensors = layer(node, found->second, weight->second);
    } else {  // kept in floats
      tensors.weight = weight->second;
      const auto bias = net_.tensors.find(node.name + ".bias");
      if (bias != net_.tensors.end()) tensors.bias = bias->second;
    }
    gather(node, tensors);
    made_.layers[node.name] = std::move(tensors);
    made_.graph.add(std::move(node));
  }

  // A tap convolution, where the model's metadata says that it is one.
  void gather(Node& node, LayerTensors& tensors) {
    const auto facts = facts_.find(node.name);
    if (facts == facts_.end() || facts->second.taps == 0 || as_taps(facts->second, node, tensors, dropped_)) return;
    fail_data("[onnx] metadata '{}': expected the taps of '{}' as its weights have them, got others ({})",
              kInt8FactsKey, node.name, label_);
  }

  LayerTensors layer(const Node& node, const ImportedBytes::Layer& from, const Tensor& floats) {
    if (!from.weight->problem.empty())
      refuse(from.where, "a scale for each output and zero points of 0 in its weights, got " + from.weight->problem);
    const auto input = bytes_.roundings.find(node.inputs[0]);
    if (input == bytes_.roundings.end()) {
      refuse(from.where, fmt::format("'{}', which it reads, to be rounded to bytes, got floats", node.inputs[0]));
    }
    check_floats(from.where, *from.weight, floats);
    LayerTensors made;
    made.scale = scale_of(node, from);
    made.weight = Tensor(DType::kI8, floats.shape());
    for (size_t i = 0; i < floats.count(); ++i) {
      const int32_t value = from.weight->values[i];
      if (value < -127 || value > 127) refuse(from.where, fmt::format("weights of -127 to 127, got {}", value));
      made.weight.data<int8_t>()[i] = static_cast<int8_t>(value);
    }
    if (const auto bias = net_.tensors.find(node.name + ".bias"); bias != net_.tensors.end()) {
      add_bias(node, from, bias->second, input->second.scale, made);
    }
    return made;
  }

  // Nothing between the integers and the layer has changed them.
  void check_floats(const std::string& where, const OnnxBytes& bytes, const Tensor& floats) const {
    const size_t outputs = static_cast<size_t>(floats.shape()[0]), each = floats.count() / outputs;
    bool is_same =
        bytes.values.size() == floats.count() && (bytes.scales.size() == 1 || bytes.scales.size() == outputs);
    for (size_t i = 0; is_same && i < floats.count(); ++i) {
      const float scale = bytes.scales[bytes.scales.size() == 1 ? 0 : i / each];
      is_same = static_cast<float>(bytes.values[i]) * scale == floats.data<float>()[i];
    }
    if (!is_same) refuse(where, "weights and a bias as a DequantizeLinear gives them, got others");
  }

  WeightScale scale_of(const Node& node, const ImportedBytes::Layer& from) const {
    std::vector<float> scales = from.weight->scales;
    if (scales.size() == 1)
      scales.assign(static_cast<size_t>(net_.tensors.at(node.name + ".weight").shape()[0]), scales[0]);
    WeightScale made;
    const auto facts = facts_.find(node.name);
    made.base = facts != facts_.end() && facts->second.base
                    ? *facts->second.base
                    : std::max(*std::max_element(scales.begin(), scales.end()), std::numeric_limits<float>::min());
    for (const float scale : scales) {
      const double steps = WeightScale::kStepsPerOctave * std::log2(static_cast<double>(made.base) / scale);
      const bool is_near = steps > -0.5 && steps < kMaxStep + 0.5;  // false for a NaN
      made.steps.push_back(is_near ? static_cast<uint8_t>(std::lround(std::fabs(steps))) : 0);
      if (is_near && static_cast<float>(made.of(static_cast<int64_t>(made.steps.size()) - 1)) == scale) continue;
      refuse(from.where, fmt::format("scales of weights that are sixteenths of an octave apart, got {:g} and {:g}",
                                     made.base, scale));
    }
    return made;
  }

  void add_bias(const Node& node, const ImportedBytes::Layer& from, const Tensor& floats, float input_scale,
                LayerTensors& made) const {
    if (from.bias == nullptr || !from.bias->problem.empty()) {
      refuse(from.where, "a bias of integers, got " + (from.bias == nullptr ? "floats" : from.bias->problem));
    }
    check_floats(from.where, *from.bias, floats);
    const std::vector<int32_t>& values = from.bias->values;
    for (size_t d = 0; d < values.size(); ++d) {
      const float scale = from.bias->scales[from.bias->scales.size() == 1 ? 0 : d];
      const auto unit = static_cast<float>(input_scale * made.scale.of(static_cast<int64_t>(d)));
      if (scale != unit) {
        refuse(from.where, fmt::format("a bias in units of input and weights ({:g}), got {:g}", unit, scale));
      }
    }
    const auto facts = facts_.find(node.name);
    made.scale.bias_shift = facts != facts_.end() && facts->second.base
                                ? static_cast<int>(std::min<int64_t>(facts->second.bias_shift, kMaxBiasShift))
                                : common_shift(values);
    made.bias = Tensor(DType::kI16, floats.shape());
    for (size_t d = 0; d < values.size(); ++d) {
      const int32_t unit = 1 << made.scale.bias_shift, value = values[d] / unit;
      if (value * unit != values[d] || std::abs(value) > std::numeric_limits<int16_t>::max()) {
        refuse(from.where, fmt::format("a bias of 16 bits and a shift of the layer, got {}", values[d]));
      }
      made.bias.data<int16_t>()[d] = static_cast<int16_t>(value);
    }
  }

  // The most that all of them are multiples of.
  static int common_shift(const std::vector<int32_t>& values) {
    const bool all_zero = std::all_of(values.begin(), values.end(), [](int32_t value) { return value == 0; });
    int shift = 0;
    const auto fits = [&] {
      return std::all_of(values.begin(), values.end(), [&](int32_t value) { return value % (1 << (shift + 1)) == 0; });
    };
    while (!all_zero && shift < kMaxBiasShift && fits()) ++shift;
    return shift;
  }

  // What the integers of the network may be.
  Int8Plan checked_plan() const {
    try {
      check_tap_net(made_);
      return plan_int8(made_);
    } catch (const Error& problem) {
      fail_data("[onnx] expected a model that is quantized as onetap's exports are, got another: {} ({})",
                problem.what(), label_);
    }
  }

  // Bytes are signed where the network's are.
  void check() const {
    const Int8Plan plan = checked_plan();
    for (size_t i = 0; i < plan.values.size(); ++i) {
      const Int8Value& value = plan.values[i];
      if (value.dtype == DType::kF32) continue;
      const OnnxRounding& rounding = bytes_.roundings.at(plan.plan.values[i].node->name);
      if (rounding.dtype == value.dtype) continue;
      refuse(rounding.where, value.dtype == DType::kU8 ? "uint8 where nothing is negative, got int8"
                                                       : "int8 where values may be negative, got uint8");
    }
  }

  const ImportedNet& net_;
  const ImportedBytes& bytes_;
  const std::string& label_;
  std::map<std::string, LayerFacts> facts_;
  TapNet made_;
  int64_t dropped_ = 0;
};

}  // namespace

TapNet int8_net(const ImportedNet& net, const ImportedBytes& bytes, const std::string& label) {
  return Int8Builder(net, bytes, label).build();
}

}  // namespace onetap
