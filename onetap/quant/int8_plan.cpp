#include "onetap/quant/int8_plan.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {
namespace {

constexpr int kMinShift = 32, kMaxShift = 62;
constexpr int kMaxLeftShift = 15;
constexpr int kAddShift = 16;
constexpr double kMaxSum = 2147483647.0;

bool adds_up(Op op) {
  return op == Op::kAvgPool || op == Op::kGlobalAvgPool;
}

int32_t rounded(double value, double most, const Node& node) {
  const double whole = std::floor(value + 0.5);
  if (!(std::fabs(whole) <= most)) {
    fail_data("[quant] expected scales of one size around '{}', got a factor of {:g}", node.name, value);
  }
  return static_cast<int32_t>(whole);
}

float as_float(double unit, const Node& node) {
  if (unit > std::numeric_limits<float>::max()) {
    fail_data("[quant] expected outputs that floats can hold, got steps of {:g} ('{}')", unit, node.name);
  }
  return static_cast<float>(unit);
}

class Int8Planner {
 public:
  explicit Int8Planner(const TapNet& net) : net_(net) {}

  Int8Plan plan() {
    PlanOptions options;
    options.dtype = DType::kU8;
    options.alignment = 1;
    result_.plan = plan_execution(net_.graph, options);
    add_values();
    for (const PlannedStep& step : result_.plan.steps) add_step(step);
    return std::move(result_);
  }

 private:
  bool is_kept(const Node& node) const {
    return has_int8_weights(node.op) && net_.tensors(node).weight.dtype() == DType::kF32;
  }

  void add_values() {
    std::set<std::string> kept;
    for (const PlannedStep& step : result_.plan.steps) {
      if (is_kept(*step.node)) kept.insert(step.node->name);
    }
    const std::vector<DType> types = int8_types(result_.plan, kept);
    std::set<std::string> scaled;
    for (size_t i = 0; i < types.size(); ++i) {
      Int8Value value;
      value.dtype = types[i];
      const Node& node = *result_.plan.values[i].node;
      if (value.dtype != DType::kF32) {
        const auto found = net_.value_scales.find(node.name);
        if (found == net_.value_scales.end()) fail_data("[quant] expected a scale of the value of '{}'", node.name);
        value.scale = found->second;
        if (!(value.scale >= std::numeric_limits<float>::min()) || !std::isfinite(value.scale)) {
          fail_data("[quant] expected a positive scale, got {:g} ('{}')", value.scale, node.name);
        }
        scaled.insert(node.name);
      }
      result_.values.push_back(value);
    }
    for (const auto& [name, scale] : net_.value_scales) {
      if (scaled.count(name) > 0) continue;
      fail_data("[quant] expected scales of the {} values that steps keep in bytes, got one of '{}' too", scaled.size(),
                name);
    }
  }

  void add_step(const PlannedStep& step) {
    const Node& node = *step.node;
    check_int8_op(node);
    result_.steps.emplace_back();
    if (is_kept(node)) {
      result_.steps.back().is_kept = true;
    } else if (has_int8_weights(node.op)) {
      add_layer(step, result_.steps.back());
    } else if (adds_up(node.op)) {
      add_pool(step, result_.steps.back());
    } else if (node.op == Op::kAdd) {
      add_sum(step, result_.steps.back());
    } else {
      for (const int input : step.inputs) {
        if (scale_of(input) == scale_of(step.output)) continue;
        fail_data("[quant] expected '{}' to keep the scale {:g} of its input, got {:g}", node.name, scale_of(input),
                  scale_of(step.output));
      }
    }
  }

  // Per output the most that the sum can reach, so that no order of adding up passes 32 bits.
  void add_layer(const PlannedStep& step, Int8Step& made) {
    const Node& node = *step.node;
    const LayerTensors& tensors = net_.tensors(node);
    check_tensors(node, tensors);
    const auto outputs = static_cast<int64_t>(tensors.scale.steps.size());
    const Int8Value& input = result_.value(step.inputs[0]);
    const auto* weight = tensors.weight.data<int8_t>();
    const auto* bias = tensors.bias.empty() ? nullptr : tensors.bias.data<int16_t>();
    const auto per_output = static_cast<int64_t>(tensors.weight.count()) / outputs;
    double reach = 0;
    for (int64_t d = 0; d < outputs; ++d) {
      made.bias.push_back(bias == nullptr ? 0 : bias[d] * (1 << tensors.scale.bias_shift));
      int64_t magnitudes = 0;
      for (int64_t i = 0; i < per_output; ++i) magnitudes += std::abs(static_cast<int>(weight[d * per_output + i]));
      reach = std::max(reach, static_cast<double>(magnitudes) * input.most() + std::abs(double{1} * made.bias.back()));
    }
    if (reach > kMaxSum) fail_data("[quant] expected sums of at most 32 bits, got {:g} ('{}')", reach, node.name);
    std::vector<double> units;  // what 1 of the sum stands for
    for (int64_t d = 0; d < outputs; ++d) units.push_back(static_cast<double>(input.scale) * tensors.scale.of(d));
    if (gives_floats(result_.plan, step)) {
      for (const double unit : units) made.dequantize.push_back(as_float(unit, node));
      return;
    }
    if (step.residual >= 0) reach = add_residual(step, units, reach, made);
    add_requantize(step, units, reach, made);
  }

  // Per unit of a sum that reaches `reach`, before any shift to the left: shifted as far as factors below one half
  // need.
  void add_requantize(const PlannedStep& step, const std::vector<double>& units, double reach, Int8Step& made) {
    const double largest = *std::max_element(units.begin(), units.end()) / scale_of(step.output);
    while (made.left_shift < kMaxLeftShift && !(std::ldexp(largest, -made.left_shift) < 0.5)) ++made.left_shift;
    if (std::ldexp(reach, made.left_shift) > kMaxSum) {
      fail_data(
          "[quant] expected a finer scale of '{}' or a coarser one behind it, got sums of {:g} and a factor of {:g}",
          step.node->name, reach, largest);
    }
    for (const double unit : units) {
      made.requantize.push_back(
          requantize_by(std::ldexp(unit, -made.left_shift) / scale_of(step.output), step.node->name.c_str()));
    }
  }

  // The residual joins the sum in the sum's own units, made finer as far as 32 bits allow. Returns how far both reach.
  double add_residual(const PlannedStep& step, const std::vector<double>& units, double reach, Int8Step& made) {
    const Int8Value& residual = result_.value(step.residual);
    double finest = 0;
    for (const double unit : units) finest = std::max(finest, residual.scale / unit);
    const double whole = reach + (finest + 1) * residual.most();
    if (whole > kMaxSum) {
      fail_data("[quant] expected sums of at most 32 bits with what '{}' adds, got {:g}", step.node->name, whole);
    }
    while (made.left_shift < kMaxLeftShift && std::ldexp(whole, made.left_shift + 1) <= kMaxSum) ++made.left_shift;
    for (const double unit : units) {
      made.residual_factor.push_back(rounded(std::ldexp(residual.scale / unit, made.left_shift), kMaxSum, *step.node));
    }
    return whole;
  }

  void add_pool(const PlannedStep& step, Int8Step& made) {
    const Node& node = *step.node;
    const int64_t area = node.op == Op::kGlobalAvgPool ? result_.plan.value(step.inputs[0]).pixels : node.kernel.area();
    if (static_cast<double>(area) * 255 > kMaxSum) {
      fail_data("[quant] expected windows of at most 32 bits, got {} pixels ('{}')", area, node.name);
    }
    const double unit = static_cast<double>(scale_of(step.inputs[0])) / static_cast<double>(area);
    if (gives_floats(result_.plan, step)) {
      made.dequantize.push_back(as_float(unit, node));
    } else {
      add_requantize(step, {unit}, static_cast<double>(area) * 255, made);
    }
  }

  void add_sum(const PlannedStep& step, Int8Step& made) {
    double reach = 0;
    for (const int input : step.inputs) {
      const double factor = std::ldexp(static_cast<double>(scale_of(input)) / scale_of(step.output), kAddShift);
      made.factors.push_back(rounded(factor, kMaxSum, *step.node));
      reach += std::fabs(static_cast<double>(made.factors.back())) * result_.value(input).most();
    }
    if (reach + (1 << (kAddShift - 1)) > kMaxSum) {
      fail_data("[quant] expected scales of one size around '{}', got sums up to {:g}", step.node->name, reach);
    }
  }

  static void check_tensors(const Node& node, const LayerTensors& tensors) {
    if (tensors.weight.dtype() != DType::kI8 || (!tensors.bias.empty() && tensors.bias.dtype() != DType::kI16)) {
      fail_data("[quant] expected weights of type I8 and a bias of I16, got {} and {} ('{}')",
                dtype_name(tensors.weight.dtype()), dtype_name(tensors.bias.dtype()), node.name);
    }
    const WeightScale& scale = tensors.scale;
    if (!(scale.base >= std::numeric_limits<float>::min()) || !std::isfinite(scale.base) || scale.bias_shift < 0 ||
        scale.bias_shift > 15 || static_cast<int64_t>(scale.steps.size()) != node.shape[0]) {
      fail_data(
          "[quant] expected a positive scale of weights, a shift of the bias in 0..15 and {} steps, got {:g}, {} and "
          "{} ('{}')",
          node.shape[0], scale.base, scale.bias_shift, scale.steps.size(), node.name);
    }
  }

  float scale_of(int value) const { return result_.value(value).scale; }

  const TapNet& net_;
  Int8Plan result_;
};

}  // namespace

Int8Plan plan_int8(const TapNet& net) {
  return Int8Planner(net).plan();
}

Requantize requantize_by(double factor, const char* what) {
  if (!(factor > 0) || !(factor < 0.5)) {
    fail_data("[quant] expected a factor between 0 and one half after '{}', got {:g}", what, factor);
  }
  int exponent = 0;
  const double fraction = std::frexp(factor, &exponent);  // 0.5 <= fraction < 1, exponent <= -1
  auto multiplier = static_cast<int64_t>(std::floor(std::ldexp(fraction, 31) + 0.5));
  int shift = 31 - exponent;
  if (multiplier == int64_t{1} << 31) {  // rounded up to the next power of two
    multiplier >>= 1;
    --shift;
  }
  if (shift < kMinShift) return {std::numeric_limits<int32_t>::max(), kMinShift};
  if (shift > kMaxShift) return {0, kMaxShift};
  return {static_cast<int32_t>(multiplier), shift};
}

void check_int8_op(const Node& node) {
  if (has_int8_weights(node.op) || adds_up(node.op) || keeps_scale(node.op) || node.op == Op::kAdd) return;
  fail_data("[quant] expected an op that has an int8 form, got {} ('{}')", op_info(node.op).name, node.name);
}

bool has_int8_weights(Op op) {
  return op == Op::kConv || op == Op::kTapConv || op == Op::kLinear || op == Op::kAffine;
}

bool keeps_scale(Op op) {
  return op == Op::kMaxPool || op == Op::kSubsample || op == Op::kFlatten || op == Op::kRelu || op == Op::kShift ||
         op == Op::kConcat;
}

bool gives_floats(const ExecutionPlan& plan, const PlannedStep& step) {
  const Op op = step.node->op;
  if (step.output != plan.output || step.residual >= 0 || step.relu) return false;
  if (op != Op::kLinear && op != Op::kConv && op != Op::kTapConv && !adds_up(op)) return false;
  // Floats have no place in the arena: a file may have steps behind the output that would read them there.
  return std::none_of(plan.steps.begin(), plan.steps.end(), [&](const PlannedStep& other) {
    return other.residual == plan.output ||
           std::find(other.inputs.begin(), other.inputs.end(), plan.output) != other.inputs.end();
  });
}

std::vector<DType> int8_types(const ExecutionPlan& plan, const std::set<std::string>& kept) {
  std::vector<DType> types(plan.values.size(), DType::kI8);
  const auto type_of = [&](int value) -> DType& { return types[static_cast<size_t>(value)]; };
  bool read_as_bytes = plan.input == plan.output;
  for (const PlannedStep& step : plan.steps) {
    const bool reads_input = std::count(step.inputs.begin(), step.inputs.end(), plan.input) > 0;
    if (reads_input && kept.count(step.node->name) == 0) read_as_bytes = true;
    if (gives_floats(plan, step)) {
      type_of(step.output) = DType::kF32;
    } else if (step.relu || step.node->op == Op::kRelu) {
      type_of(step.output) = DType::kU8;
    } else if (!has_int8_weights(step.node->op)) {
      // What adds up or copies values that are not negative gives such values.
      const bool unsigned_inputs =
          std::all_of(step.inputs.begin(), step.inputs.end(), [&](int input) { return type_of(input) == DType::kU8; });
      if (unsigned_inputs) type_of(step.output) = DType::kU8;
    }
  }
  if (!read_as_bytes) type_of(plan.input) = DType::kF32;
  return types;
}

}  // namespace onetap
