// Operators without weights: sums, products, pools. Functions are in ops_functions.cpp.
#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/onnx/converter.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace onetap {
namespace {

constexpr int64_t kMostKernel = 64;  // of a pool

bool is_number(const OnnxConstant& constant, float value) {
  return constant.count() == 1 && std::fabs(constant.floats()[0] - value) <= 1e-6f * value;
}

bool is_positive_zero_free(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value != 0 && std::isfinite(value); });
}

// A constant as one number for each channel of x: of one number, or [C, 1, 1] ([C] beside vectors).
std::vector<float> per_channel(Converter& converter, const Operator& op, const OnnxValue& x, int index) {
  const OnnxConstant& constant = converter.floats(op, index);
  const std::vector<float> values = converter.weights(op, constant);
  const auto channels = static_cast<size_t>(x.dims[0]);
  if (values.size() == 1) {
    converter.count_weights(op, x.dims[0]);
    return std::vector<float>(channels, values[0]);
  }
  const size_t behind = x.dims.size() - 1;  // extents behind the channels
  const size_t rank = constant.dims.size();
  const bool has_place = rank > behind && constant.dims[rank - 1 - behind] == x.dims[0];
  if (values.size() != channels || !has_place) {
    op.refuse(
        fmt::format("constants of one number, or of one for each of {} channels, got {}", channels, values.size()));
  }
  return values;
}

int constant_index(Converter& converter, const Operator& op) {
  if (op.node.input_size() != 2) op.refuse(fmt::format("two inputs, got {}", op.node.input_size()));
  const bool first = converter.input(op, 0).is_constant(), second = converter.input(op, 1).is_constant();
  return second ? 1 : first ? 0 : -1;
}

OnnxValue convert_sum(Converter& converter, const Operator& op) {
  std::vector<OnnxValue> inputs;
  for (int i = 0; i < op.node.input_size(); ++i) inputs.push_back(converter.computed(op, i));
  if (inputs.empty()) op.refuse("inputs, got none");
  if (inputs.size() == 1) return inputs[0];
  for (const OnnxValue& input : inputs) {
    if (input.dims != inputs[0].dims) {
      op.refuse(fmt::format("equal shapes to add, got {} and {}", shape_text(inputs[0].dims), shape_text(input.dims)));
    }
  }
  return converter.add(op, Op::kAdd, inputs);
}

OnnxValue convert_add(Converter& converter, const Operator& op) {
  const int constant = constant_index(converter, op);
  if (constant < 0) return convert_sum(converter, op);
  const OnnxValue& x = converter.computed(op, 1 - constant);
  const auto bytes = converter.floats(op, constant).bytes;
  const OnnxValue sum =
      scaled(converter, op, x, op.node.input(1 - constant), {}, per_channel(converter, op, x, constant));
  if (Draft& made = converter.draft(sum); made.node.op == Op::kAffine) made.bias_bytes = bytes;
  return sum;
}

OnnxValue convert_sub(Converter& converter, const Operator& op) {
  const int constant = constant_index(converter, op);
  if (constant < 0) op.refuse("a difference with a constant, got one of two computed values");
  const OnnxValue& x = converter.computed(op, 1 - constant);
  std::vector<float> shift = per_channel(converter, op, x, constant), scale;
  if (constant == 0) {
    scale.assign(shift.size(), -1);
  } else {
    for (float& value : shift) value = -value;
  }
  return scaled(converter, op, x, op.node.input(1 - constant), std::move(scale), std::move(shift));
}

OnnxValue convert_div(Converter& converter, const Operator& op) {
  if (constant_index(converter, op) != 1) op.refuse("a quotient by a constant, got another");
  const OnnxValue x = converter.computed(op, 0);
  if (is_number(converter.floats(op, 1), 6)) {
    if (const auto made = sixth(converter, op, x, op.node.input(0))) return *made;
  }
  std::vector<float> scale = per_channel(converter, op, x, 1);
  if (!is_positive_zero_free(scale)) op.refuse("divisors other than 0, got 0");
  for (float& value : scale) value = 1 / value;
  return scaled(converter, op, x, op.node.input(0), std::move(scale), {});
}

OnnxValue convert_mul(Converter& converter, const Operator& op) {
  const int constant = constant_index(converter, op);
  if (constant >= 0) {
    const OnnxValue x = converter.computed(op, 1 - constant);
    if (is_number(converter.floats(op, constant), 1.0f / 6)) {
      if (const auto made = sixth(converter, op, x, op.node.input(1 - constant))) return *made;
    }
    const auto bytes = converter.floats(op, constant).bytes;
    const OnnxValue product =
        scaled(converter, op, x, op.node.input(1 - constant), per_channel(converter, op, x, constant), {});
    if (Draft& made = converter.draft(product); made.node.op == Op::kAffine) made.weight_bytes = bytes;
    return product;
  }
  OnnxValue a = converter.computed(op, 0), b = converter.computed(op, 1);
  std::vector<bool> alone = {converter.has_one_reader(op.node.input(0)), converter.has_one_reader(op.node.input(1))};
  for (int i = 0; i < 2; ++i) {
    if (const auto gate = gate_of(converter, a, b)) return converter.add(op, *gate, {a});
    std::swap(a, b);
  }
  if (a.dims.size() != b.dims.size()) {
    op.refuse(fmt::format("factors of as many extents, got {} and {}", shape_text(a.dims), shape_text(b.dims)));
  }
  // An image of one pixel has as many numbers as its gate, which is a vector.
  const bool b_is_image = converter.shape(a).size() < converter.shape(b).size();
  if (b_is_image || element_count(a.dims) < element_count(b.dims)) {
    std::swap(a, b);
    std::reverse(alone.begin(), alone.end());
  }
  const OnnxValue product = converter.add(op, Op::kMul, {a, b});
  converter.draft(product).reads_alone = std::move(alone);
  return product;
}

// --- pools

// Windows along one side, as PyTorch and ONNX count them.
int64_t pooled(int64_t extent, int64_t before, int64_t after, int64_t span, int64_t stride, bool round_up) {
  const int64_t room = extent + before + after - span;
  if (room < 0) return 0;
  int64_t count = (room + (round_up ? stride - 1 : 0)) / stride + 1;
  if (round_up && (count - 1) * stride >= extent + before) --count;  // a window that would begin behind the image
  return count;
}

OnnxValue convert_pool(Converter& converter, const Operator& op) {
  const bool is_max = op.node.op_type() == "MaxPool";
  OnnxValue x = converter.computed(op, 0);
  if (x.dims.size() != 3) op.refuse(fmt::format("an image, got {} extents behind the batch", x.dims.size()));
  Draft draft;
  draft.node = default_node(is_max ? Op::kMaxPool : Op::kAvgPool);
  Node& node = draft.node;
  node.kernel = op.pair("kernel_shape", 0);
  node.stride = op.pair("strides", 1);
  const bool in_range = node.kernel.h >= 1 && node.kernel.w >= 1 && node.stride.h >= 1 && node.stride.w >= 1 &&
                        node.kernel.h <= (1 << 20) && node.kernel.w <= (1 << 20) && node.stride.h <= (1 << 20) &&
                        node.stride.w <= (1 << 20);
  if (!in_range) op.refuse("kernel_shape and strides of 1 or more, got less");
  if (op.pair("dilations", 1) != Extent2{1, 1}) op.refuse("dilations of 1, got more");
  Sides sides = padding_of(op, x.dims, node.kernel, node.stride);
  const bool round_up = op.integer("ceil_mode", 0) != 0;
  const int64_t rows = pooled(x.dims[1], sides.top, sides.bottom, node.kernel.h, node.stride.h, round_up);
  const int64_t columns = pooled(x.dims[2], sides.left, sides.right, node.kernel.w, node.stride.w, round_up);
  if (rows < 1 || columns < 1) op.refuse("a kernel that fits the image, got a larger one");
  const bool is_plain = node.stride == Extent2{1, 1} && sides.is_zero();
  if (node.kernel.area() == 1 && is_plain) return x;
  if (converter.shape(x).size() == 1) op.refuse("an image of more than one pixel, got one");

  const int64_t more_rows = (rows - 1) * node.stride.h + node.kernel.h - x.dims[1] - sides.top - sides.bottom;
  const int64_t more_columns = (columns - 1) * node.stride.w + node.kernel.w - x.dims[2] - sides.left - sides.right;
  const bool has_more = more_rows > 0 || more_columns > 0;
  if (!is_max && (has_more || (op.integer("count_include_pad", 0) == 0 && !sides.is_zero()))) {
    op.refuse("a mean over whole windows (count_include_pad 1 where there is padding, and no window cut by ceil_mode)");
  }
  const bool is_whole = sides.is_zero() && node.kernel == Extent2{x.dims[1], x.dims[2]};
  if (!is_max && is_whole && (node.kernel.h > kMostKernel || node.kernel.w > kMostKernel)) {
    OnnxValue mean = converter.add(op, Op::kGlobalAvgPool, {x});
    mean.dims = {x.dims[0], 1, 1};
    return mean;
  }
  sides.bottom += std::max<int64_t>(more_rows, 0);
  sides.right += std::max<int64_t>(more_columns, 0);
  const bool is_small = sides.top * 2 <= node.kernel.h && sides.left * 2 <= node.kernel.w;
  if (sides.is_symmetric() && is_small) {
    node.padding = {sides.top, sides.left};
  } else {
    x = add_pad(converter, op, x, sides, is_max ? PadFill::kLowest : PadFill::kZero);
  }
  return converter.add(op, std::move(draft), {x});
}

OnnxValue convert_global_pool(Converter& converter, const Operator& op) {
  const OnnxValue x = converter.computed(op, 0);
  if (x.dims.size() != 3) op.refuse(fmt::format("an image, got {} extents behind the batch", x.dims.size()));
  if (converter.shape(x).size() == 1) return x;
  if (op.node.op_type() == "GlobalMaxPool") {
    Draft draft;
    draft.node = default_node(Op::kMaxPool);
    draft.node.kernel = {x.dims[1], x.dims[2]};
    return converter.add(op, std::move(draft), {x});
  }
  OnnxValue mean = converter.add(op, Op::kGlobalAvgPool, {x});
  mean.dims = {x.dims[0], 1, 1};
  return mean;
}

// Over rows and columns, at once or one after the other: axes are an attribute before opset 18, then an input.
OnnxValue convert_mean(Converter& converter, const Operator& op) {
  OnnxValue x = converter.computed(op, 0);
  const std::vector<int64_t> axes = converter.axes(op, x.dims.size() + 1);
  // Places of rows and columns that are left, and those of them that are averaged now.
  std::vector<int64_t> sides;
  for (size_t i = 1; i < x.dims.size(); ++i) {
    if (static_cast<int64_t>(i + 1) != x.mean_axis) sides.push_back(static_cast<int64_t>(i + 1));
  }
  const bool is_image = x.dims.size() == 3 || x.mean_axis > 0;
  const bool is_half = is_image && sides.size() == 2 && axes.size() == 1 && axes[0] >= 2;
  if (!is_half && (!is_image || axes != sides)) op.refuse("a mean over rows and columns (axes 2 and 3)");
  const bool keeps = op.integer("keepdims", 1) != 0;
  std::vector<int64_t> dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    const bool is_gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i + 1)) != axes.end();
    if (!is_gone || keeps) dims.push_back(is_gone ? 1 : x.dims[i]);
  }
  OnnxValue mean = x;
  if (is_half) {
    mean.mean_axis = keeps ? axes[0] : OnnxValue::kGone;
  } else {
    mean.mean_axis = 0;
    if (converter.shape(x).size() == 3) mean = converter.add(op, Op::kGlobalAvgPool, {mean});
  }
  mean.dims = std::move(dims);
  return mean;
}

OnnxValue convert_concat(Converter& converter, const Operator& op) {
  std::vector<OnnxValue> inputs;
  for (int i = 0; i < op.node.input_size(); ++i) inputs.push_back(converter.computed(op, i));
  if (inputs.empty()) op.refuse("inputs, got none");
  const int64_t axis = op.integer("axis", 1);
  if (axis != 1 && axis != -static_cast<int64_t>(inputs[0].dims.size())) {
    op.refuse(fmt::format("axis 1 (channels), got {}", axis));
  }
  if (inputs.size() == 1) return inputs[0];
  OnnxValue made = converter.add(op, Op::kConcat, inputs);
  made.dims = inputs[0].dims;  // may be Cx1x1
  made.dims[0] = converter.shape(made)[0];
  return made;
}

OnnxValue convert_softmax(Converter& converter, const Operator& op) {
  const OnnxValue x = converter.computed(op, 0);
  if (!converter.is_result(op.node.output(0))) op.refuse("it at the end of the network alone");
  converter.note(
      fmt::format("{} '{}' at the end was left out: the network gives logits", op.node.op_type(), op.node.name()));
  return x;
}

}  // namespace

OnnxValue scaled(Converter& converter, const Operator& op, const OnnxValue& x, const std::string& name,
                 std::vector<float> scale, std::vector<float> shift) {
  const auto channels = static_cast<size_t>(x.dims[0]);
  const bool alone = converter.has_one_reader(name);
  Draft& made = converter.draft(x);
  const bool is_layer = made.node.op == Op::kLinear || (made.node.op == Op::kConv && scale.empty());
  // What is rounded, or has weights in bytes, stays as the model has it.
  const bool is_free = !made.rounding && !(is_layer && made.weight_bytes);
  const bool takes_in = alone && is_free && (is_layer || made.node.op == Op::kAffine);
  if (!takes_in) {
    converter.count_weights(op, x.dims[0]);
    Draft draft;
    draft.node = default_node(Op::kAffine);
    draft.tensors["weight"] = scale.empty() ? std::vector<float>(channels, 1) : std::move(scale);
    draft.tensors["bias"] = shift.empty() ? std::vector<float>(channels, 0) : std::move(shift);
    OnnxValue y = converter.add(op, std::move(draft), {x});
    y.dims = x.dims;  // may be Cx1x1
    return y;
  }
  std::vector<float>& weight = made.tensors["weight"];
  if (!scale.empty()) {
    const size_t each = weight.size() / channels;
    for (size_t i = 0; i < weight.size(); ++i) weight[i] *= scale[i / each];
    for (size_t i = 0; i < made.tensors["bias"].size(); ++i) made.tensors["bias"][i] *= scale[i];
  }
  std::vector<float>& bias = made.tensors["bias"];
  if (!shift.empty()) {
    bias.resize(channels, 0);
    for (size_t i = 0; i < channels; ++i) bias[i] += shift[i];
    if (made.node.op != Op::kAffine) made.node.bias = true;
  }
  if (bias.empty()) made.tensors.erase("bias");
  return x;
}

ConvertOperator find_plain_operator(const std::string& op_type) {
  static const std::unordered_map<std::string, ConvertOperator> table = {
      {"Sum", convert_sum},
      {"Add", convert_add},
      {"Sub", convert_sub},
      {"Mul", convert_mul},
      {"Div", convert_div},
      {"Concat", convert_concat},
      {"Softmax", convert_softmax},
      {"LogSoftmax", convert_softmax},
      {"MaxPool", convert_pool},
      {"AveragePool", convert_pool},
      {"GlobalAveragePool", convert_global_pool},
      {"GlobalMaxPool", convert_global_pool},
      {"ReduceMean", convert_mean},
  };
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace onetap
