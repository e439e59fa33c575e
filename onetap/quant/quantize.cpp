#include "onetap/quant/quantize.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/quant/int8_graph.h"
#include "onetap/quant/quantize_layer.h"
#include "onetap/quant/scale_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

constexpr float kLeastScale = 1e-20f, kScaleOfZeros = 1e-6f;
constexpr int kMaxRounds = 1000;
constexpr double kReLU6Most = 6 * 1.0001;  // what floats make of 255 times 6/255
// Of what 1 of a step's sum stands for: finer scales behind it would hold nothing more.
constexpr double kFinest = 0.6;

class Quantizer {
 public:
  // `net` is the int8_form() of a network with the graph `given`.
  Quantizer(const TapNet& net, const Graph& given, const Calibration& calibration, const QuantizeOptions& options)
      : net_(net),
        given_(given),
        calibration_(calibration),
        options_(options),
        plan_(plan_execution(net.graph)),
        types_(int8_types(plan_, options.kept)),
        groups_(plan_, types_),
        scales_(plan_.values.size(), 0.0f) {}

  TapNet quantize() {
    choose_scales();
    for (int round = 0; raise_scales(); ++round) {
      if (round == kMaxRounds) fail_data("[quant] expected scales that fit each other ({})", net_.graph.name());
    }
    check_relu6();
    TapNet made = net_;
    for (const PlannedStep& step : plan_.steps) {
      const Node& node = *step.node;
      if (!has_int8_weights(node.op) || is_kept(node)) continue;
      made.layers[node.name] = quantize_layer(net_.tensors(node), around(step));
      // Bytes hold binary weights as they hold others.
      if (node.op != Op::kTapConv && node.op != Op::kAffine) made.graph.set_method(node.name, Method());
    }
    for (size_t i = 0; i < types_.size(); ++i) {
      if (types_[i] != DType::kF32) made.value_scales[plan_.values[i].node->name] = scale_of(static_cast<int>(i));
    }
    const std::string method = options_.method == CalibrationMethod::kMinMax ? "minmax"
                               : options_.method == CalibrationMethod::kMse
                                   ? "mse"
                                   : fmt::format("percentile {:g}", options_.percentile);
    made.facts["quantized"] = calibration_.recorded ? "int8, ranges of training"
                                                    : fmt::format("int8, {}, {} images", method, calibration_.images);
    made.value_ranges.clear();
    plan_int8(made);  // the last word on what fits
    return made;
  }

 private:
  bool is_kept(const Node& node) const { return options_.kept.count(node.name) > 0; }
  float& scale_of(int value) { return scales_[static_cast<size_t>(groups_.root(value))]; }
  DType type_of(int value) const { return types_[static_cast<size_t>(value)]; }
  int32_t most_of(int value) const { return Int8Value{type_of(value), 1}.most(); }

  // Per group the scale at which the bound of each of its values fits.
  void choose_scales() {
    for (int i = 0; i < static_cast<int>(types_.size()); ++i) {
      if (type_of(i) == DType::kF32) continue;
      const int steps = groups_.steps(i);
      const double bound =
          calibration_.values[static_cast<size_t>(i)].clip(options_.method, options_.percentile, steps);
      scale_of(i) = std::max(scale_of(i), static_cast<float>(bound / steps));
    }
    // Where all was zero any scale is exact: one that is raised to what the sums in front of it hold.
    for (float& scale : scales_) scale = scale > 0 ? std::max(scale, kLeastScale) : kScaleOfZeros;
  }

  LayerSurroundings around(const PlannedStep& step) {
    LayerSurroundings made;
    made.input = {scale_of(step.inputs[0]), most_of(step.inputs[0])};
    if (step.residual >= 0) made.residual = {scale_of(step.residual), most_of(step.residual)};
    return made;
  }

  // What the scale behind a step must not be below.
  double least_scale(const PlannedStep& step) {
    const Node& node = *step.node;
    if (keeps_scale(node.op) || is_kept(node)) return 0;
    if (has_int8_weights(node.op)) {
      const LayerTensors& tensors = net_.tensors(node);
      const WeightScale weights = choose_weight_scale(tensors.weight, tensors.bias, around(step));
      double largest = 0;
      for (size_t d = 0; d < weights.steps.size(); ++d) {
        largest = std::max(largest, weights.of(static_cast<int64_t>(d)));
      }
      return kFinest * scale_of(step.inputs[0]) * largest;
    }
    if (node.op == Op::kAdd) {
      double reach = 0;
      for (const int input : step.inputs) reach += static_cast<double>(scale_of(input)) * most_of(input);
      return reach / 32000;  // a sum of factors in 1/65536 stays within 32 bits
    }
    const int64_t area = node.op == Op::kGlobalAvgPool ? plan_.value(step.inputs[0]).pixels : node.kernel.area();
    return kFinest * scale_of(step.inputs[0]) / static_cast<double>(area);
  }

  // Whether one had to be.
  bool raise_scales() {
    bool raised = false;
    for (const PlannedStep& step : plan_.steps) {
      if (type_of(step.output) == DType::kF32) continue;
      const double least = least_scale(step);
      if (scale_of(step.output) >= least) continue;
      scale_of(step.output) = static_cast<float>(least * 1.001);
      raised = true;
    }
    return raised;
  }

  // A value behind a ReLU6 that has its scale in common with larger values, or sums in front of it that are coarse, may
  // have a scale at which bytes go beyond 6.
  void check_relu6() {
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      const auto value = static_cast<int>(i);
      const std::string& name = plan_.values[i].node->name;
      const double most = static_cast<double>(scale_of(value)) * groups_.steps(value);
      if (given_.node(name).op != Op::kRelu6 || type_of(value) == DType::kF32 || most <= kReLU6Most) continue;
      fail_data("[quant] expected bytes up to 6 behind a relu6, got up to {:g} ('{}')", most, name);
    }
  }

  const TapNet& net_;
  const Graph& given_;
  const Calibration& calibration_;
  const QuantizeOptions& options_;
  const ExecutionPlan plan_;
  const std::vector<DType> types_;
  const ScaleGroups groups_;
  std::vector<float> scales_;  // of groups, at their roots
};

}  // namespace

void check_quantizable(const TapNet& net, const QuantizeOptions& options) {
  if (net.is_int8()) fail_data("[quant] expected a network of floats, got one of int8 ({})", net.graph.name());
  check_tap_net(net);
  const TapNet planned = int8_form(net);
  for (const Node& node : planned.graph.nodes()) {
    if (node.op != Op::kInput) check_int8_op(node);
  }
  for (const std::string& name : options.kept) {
    const Node* node = planned.graph.find(name);
    if (node != nullptr && has_int8_weights(node->op)) continue;
    fail_usage("[quant] expected a layer with weights to keep, got {}'{}'", node == nullptr ? "no layer " : "", name);
  }
  if (options.method == CalibrationMethod::kPercentile && !(options.percentile > 0 && options.percentile <= 100)) {
    fail_usage("[quant] expected a percentile above 0 and at most 100, got {:g}", options.percentile);
  }
}

Calibration recorded_calibration(const TapNet& net) {
  if (net.value_ranges.empty()) {
    fail_data("[quant] expected a network that was trained for int8, got one without ranges ({})", net.graph.name());
  }
  const TapNet planned = int8_form(net);
  const ExecutionPlan plan = plan_execution(planned.graph);
  const std::vector<DType> types = int8_types(plan);
  std::vector<bool> is_copied(plan.values.size(), false);
  for (const PlannedStep& step : plan.steps) {
    if (keeps_scale(step.node->op)) is_copied[static_cast<size_t>(step.output)] = true;
  }
  Calibration calibration;
  calibration.recorded = true;
  for (size_t i = 0; i < plan.values.size(); ++i) {
    calibration.values.emplace_back();
    const std::string& name = plan.values[i].node->name;
    if (const auto found = net.value_ranges.find(name); found != net.value_ranges.end()) {
      calibration.values.back().add(&found->second, 1, name.c_str());
    } else if (types[i] != DType::kF32 && !is_copied[i]) {
      fail_data("[quant] expected a range of '{}', got none ({})", name, net.graph.name());
    }
  }
  return calibration;
}

TapNet quantize_net(const TapNet& net, const Calibration& calibration, const QuantizeOptions& options) {
  check_quantizable(net, options);
  if (calibration.images < 1 && !calibration.recorded) {
    fail_usage("[quant] expected images to calibrate with, got none");
  }
  QuantizeOptions used = options;
  if (calibration.recorded) used.method = CalibrationMethod::kMinMax;
  const TapNet planned = int8_form(net);
  return Quantizer(planned, net.graph, calibration, used).quantize();
}

}  // namespace onetap
