// Functions of one value: Relu, Clip, Sigmoid and what is written with them.
#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/onnx/converter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace onetap {
namespace {

constexpr float kNoLimit = std::numeric_limits<float>::max();  // a limit that is none

template <Op kind>
OnnxValue convert_function(Converter& converter, const Operator& op) {
  return converter.add(op, kind, {converter.computed(op, 0)});
}

OnnxValue convert_hard_sigmoid(Converter& converter, const Operator& op) {
  const float alpha = op.real("alpha", 0.2f), beta = op.real("beta", 0.5f);
  const bool is_torchs = std::fabs(alpha - 1.0f / 6) <= 1e-6f && beta == 0.5f;  // false for a NaN
  if (!is_torchs) {
    op.refuse(fmt::format("alpha 1/6 and beta 1/2 (PyTorch's hardsigmoid), got {} and {}", alpha, beta));
  }
  return convert_function<Op::kHardSigmoid>(converter, op);
}

// x between two limits, as far as networks have such functions.
OnnxValue limited(Converter& converter, const Operator& op, int index, float low, float high) {
  OnnxValue x = converter.computed(op, index);
  const bool is_open_below = low <= -kNoLimit, is_open_above = high >= kNoLimit;
  bool alone = converter.has_one_reader(op.node.input(index));
  if (is_open_below && high == 6 && converter.draft(x).node.op == Op::kRelu && !converter.draft(x).rounding) {
    x.draft = converter.draft(x).inputs[0];  // the relu is the lower limit
    alone = false;                           // unknown
    low = 0;
  }
  if (low == 0 && high == 6) {
    const OnnxValue made = converter.add(op, Op::kRelu6, {x});
    converter.draft(made).reads_alone = {alone};
    return made;
  }
  if (low == 0 && is_open_above) return converter.add(op, Op::kRelu, {x});
  if (is_open_below && is_open_above) return x;
  op.refuse(fmt::format("limits 0 and 6 (ReLU6), or 0 and none (ReLU), got {} and {}", low, high));
}

float one_number(Converter& converter, const Operator& op, int index, const char* what) {
  const OnnxConstant& limit = converter.floats(op, index);
  if (limit.count() != 1) op.refuse(fmt::format("one number as its {}, got {}", what, limit.count()));
  return limit.floats()[0];
}

// Limits are attributes before opset 11, then inputs.
OnnxValue convert_clip(Converter& converter, const Operator& op) {
  const auto limit = [&](int index, const char* name, float usual) {
    if (op.opset < 11) return op.real(name, usual);
    return op.has_input(index) ? one_number(converter, op, index, name) : usual;
  };
  return limited(converter, op, 0, limit(1, "min", -kNoLimit), limit(2, "max", kNoLimit));
}

// Min and Max of a value and a number.
OnnxValue convert_limit(Converter& converter, const Operator& op) {
  const bool is_min = op.node.op_type() == "Min";
  if (op.node.input_size() != 2) op.refuse(fmt::format("two inputs, got {}", op.node.input_size()));
  const int number = converter.input(op, 0).is_constant() ? 0 : 1;
  const float limit = one_number(converter, op, number, "limit");
  return limited(converter, op, 1 - number, is_min ? -kNoLimit : limit, is_min ? limit : kNoLimit);
}

bool are_all(const std::vector<float>& values, float number) {
  return std::all_of(values.begin(), values.end(), [&](float value) { return value == number; });
}

// A sixth of relu6(y + 3), of which nobody else reads the relu6 if `alone`.
std::optional<OnnxValue> hard_sigmoid_of(Converter& converter, const Operator& op, const OnnxValue& x, bool alone) {
  const Draft& relu6 = converter.draft(x);
  if (relu6.node.op != Op::kRelu6 || relu6.rounding) return std::nullopt;
  OnnxValue y;
  y.draft = relu6.inputs[0];
  y.dims = x.dims;
  Draft& before = converter.draft(y);
  if (before.rounding || before.weight_bytes || before.bias_bytes) return std::nullopt;
  const bool is_layer = before.node.op == Op::kConv || before.node.op == Op::kLinear;
  if (before.node.op == Op::kAffine && are_all(before.tensors.at("weight"), 1) &&
      are_all(before.tensors.at("bias"), 3)) {
    y.draft = before.inputs[0];
  } else if (is_layer && before.node.bias && alone && !relu6.reads_alone.empty() &&
             relu6.reads_alone[0]) {  // the 3 is in its bias
    std::vector<float>& bias = before.tensors.at("bias");
    for (float& value : bias) value -= 3;
    if (are_all(bias, 0)) {
      before.node.bias = false;
      before.tensors.erase("bias");
    }
  } else {
    return std::nullopt;
  }
  return converter.add(op, Op::kHardSigmoid, {y});
}

}  // namespace

// x sigmoid(x) and x hardsigmoid(x) have ops of their own; the sigmoid goes if nobody else reads it.
std::optional<Op> gate_of(Converter& converter, const OnnxValue& y, const OnnxValue& factor) {
  const Draft& draft = converter.draft(factor);
  if (draft.inputs.size() != 1 || draft.inputs[0] != y.draft) return std::nullopt;
  if (draft.node.op == Op::kSigmoid) return Op::kSilu;
  if (draft.node.op == Op::kHardSigmoid) return Op::kHardSwish;
  return std::nullopt;
}

std::optional<OnnxValue> sixth(Converter& converter, const Operator& op, const OnnxValue& x, const std::string& name) {
  const bool alone = converter.has_one_reader(name);
  if (auto gate = hard_sigmoid_of(converter, op, x, alone)) return gate;
  const Draft product = converter.draft(x);
  if (product.node.op != Op::kMul || product.rounding) return std::nullopt;
  std::vector<OnnxValue> factors(2);
  for (size_t i = 0; i < 2; ++i) {
    factors[i].draft = product.inputs[i];
    factors[i].dims = converter.shape(factors[i]);
  }
  for (size_t i = 0; i < 2; ++i) {
    // A product that this function made does not say who else reads its factors.
    const bool factor_alone = alone && i < product.reads_alone.size() && product.reads_alone[i];
    const auto gate = hard_sigmoid_of(converter, op, factors[i], factor_alone);
    if (!gate) continue;
    const OnnxValue& other = factors[1 - i];
    const auto whole = gate_of(converter, other, *gate);
    factors[i] = *gate;
    OnnxValue made = whole ? converter.add(op, *whole, {other}) : converter.add(op, Op::kMul, factors);
    made.dims = x.dims;
    return made;
  }
  return std::nullopt;
}

ConvertOperator find_function_operator(const std::string& op_type) {
  static const std::unordered_map<std::string, ConvertOperator> table = {
      {"Relu", convert_function<Op::kRelu>},
      {"Sigmoid", convert_function<Op::kSigmoid>},
      {"HardSigmoid", convert_hard_sigmoid},
      {"HardSwish", convert_function<Op::kHardSwish>},
      {"Clip", convert_clip},
      {"Min", convert_limit},
      {"Max", convert_limit},
  };
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace onetap
