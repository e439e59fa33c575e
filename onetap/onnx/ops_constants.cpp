// Operators of constants alone: the model's own, and those that compute a shape.
#include "onetap/base/fail.h"
#include "onetap/onnx/converter.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace onetap {
namespace {

constexpr int64_t kMostIntegers = 1 << 16;  // of a shape, with room

OnnxValue constant_value(OnnxConstant constant) {
  OnnxValue value;
  value.constant = std::make_shared<OnnxConstant>(std::move(constant));
  return value;
}

OnnxConstant integer_list(std::vector<int64_t> values) {
  OnnxConstant constant;
  constant.dims = {static_cast<int64_t>(values.size())};
  constant.set(std::move(values));
  return constant;
}

// With other extents and the same numbers.
OnnxValue with_dims(const Operator& op, const OnnxConstant& constant, std::vector<int64_t> dims) {
  op.check_extents(dims.size());
  int64_t count = 1;
  for (const int64_t extent : dims) {
    if (extent < 0 || (extent > 0 && count > std::numeric_limits<int64_t>::max() / extent))
      op.refuse("extents of 0 or more");
    count *= extent;
  }
  if (count != static_cast<int64_t>(constant.count())) {
    op.refuse(fmt::format("a shape of {} numbers, got {}", constant.count(), count));
  }
  OnnxConstant changed = constant;
  changed.dims = std::move(dims);
  return constant_value(std::move(changed));
}

const OnnxConstant& constant_input(Converter& converter, const Operator& op, int index) {
  return *converter.input(op, index).constant;
}

OnnxValue fold_constant(Converter& converter, const Operator& op) {
  OnnxConstant made;
  if (const onnx::Attribute* value = op.find("value")) {
    made = converter.constant(op, value->t());
  } else if (const onnx::Attribute* number = op.find("value_float")) {
    made.set(std::vector<float>{number->f()});
  } else if (const onnx::Attribute* numbers = op.find("value_floats")) {
    made.set(std::vector<float>(numbers->floats().begin(), numbers->floats().end()));
    made.dims = {numbers->floats_size()};
  } else if (const onnx::Attribute* integer = op.find("value_int")) {
    made.set(std::vector<int64_t>{integer->i()});
  } else if (const auto list = op.integers("value_ints")) {
    made = integer_list(*list);
  } else {
    op.refuse("a constant of floats or whole numbers, got another kind");
  }
  return constant_value(std::move(made));
}

OnnxValue fold_same(Converter& converter, const Operator& op) {
  return converter.input(op, 0);
}

OnnxValue fold_cast(Converter& converter, const Operator& op) {
  const OnnxConstant& from = constant_input(converter, op, 0);
  const int64_t type = op.integer("to", onnx::Tensor::FLOAT);
  const bool to_float = type == onnx::Tensor::FLOAT || type == onnx::Tensor::DOUBLE || type == onnx::Tensor::FLOAT16;
  if (to_float == from.is_float()) return converter.input(op, 0);
  OnnxConstant made;
  made.dims = from.dims;
  if (to_float) {
    std::vector<float> values;
    for (const int64_t value : from.integers()) values.push_back(static_cast<float>(value));
    made.set(std::move(values));
  } else {
    std::vector<int64_t> values;
    for (const float value : from.floats()) {
      if (!(value > -9e18f && value < 9e18f)) op.refuse("floats that are whole numbers");
      values.push_back(static_cast<int64_t>(value));
    }
    made.set(std::move(values));
  }
  return converter.folded(op, std::move(made));
}

OnnxValue fold_reshape(Converter& converter, const Operator& op) {
  const OnnxConstant& from = constant_input(converter, op, 0);
  std::vector<int64_t> dims = converter.integers(op, 1);
  int64_t known = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && i < from.dims.size() && op.integer("allowzero", 0) == 0) dims[i] = from.dims[i];
    if (dims[i] > 0 && known > (int64_t{1} << 40) / dims[i]) op.refuse("a smaller shape");
    if (dims[i] > 0) known *= dims[i];
  }
  for (int64_t& extent : dims) {
    if (extent == -1) extent = static_cast<int64_t>(from.count()) / known;
  }
  return with_dims(op, from, std::move(dims));
}

OnnxValue fold_unsqueeze(Converter& converter, const Operator& op) {
  const OnnxConstant& from = constant_input(converter, op, 0);
  return with_dims(op, from, converter.unsqueezed(op, from.dims));
}

OnnxValue fold_squeeze(Converter& converter, const Operator& op) {
  const OnnxConstant& from = constant_input(converter, op, 0);
  return with_dims(op, from, converter.squeezed(op, from.dims, 0));
}

// The places of some numbers of a constant, in the order of their own extents.
struct View {
  std::vector<int64_t> dims, strides;
  int64_t first = 0;
};

View whole(const Operator& op, const OnnxConstant& from) {
  if (from.count() == 0) op.refuse("numbers to take from, got none");
  View view;
  view.dims = from.dims;
  view.strides.assign(from.dims.size(), 1);
  for (size_t i = view.dims.size(); i-- > 1;) view.strides[i - 1] = view.strides[i] * view.dims[i];
  return view;
}

OnnxValue viewed(Converter& converter, const Operator& op, const OnnxConstant& from, const View& view) {
  const int64_t count = std::accumulate(view.dims.begin(), view.dims.end(), int64_t{1}, std::multiplies<>());
  OnnxConstant made;
  made.dims = view.dims;
  std::visit(
      [&](const auto& values) {
        std::decay_t<decltype(values)> taken;
        taken.reserve(static_cast<size_t>(count));
        std::vector<int64_t> at(view.dims.size(), 0);
        int64_t place = view.first;
        for (int64_t i = 0; i < count; ++i) {
          taken.push_back(values[static_cast<size_t>(place)]);
          for (size_t axis = at.size(); axis-- > 0;) {
            place += view.strides[axis];
            if (++at[axis] < view.dims[axis]) break;
            place -= view.strides[axis] * view.dims[axis];
            at[axis] = 0;
          }
        }
        made.set(std::move(taken));
      },
      *from.values);
  return converter.folded(op, std::move(made));
}

OnnxValue fold_transpose(Converter& converter, const Operator& op) {
  const OnnxConstant& from = constant_input(converter, op, 0);
  std::vector<int64_t> in_order(from.dims.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  const auto perm = op.integers("perm").value_or(std::vector<int64_t>(in_order.rbegin(), in_order.rend()));
  if (perm == in_order) return converter.input(op, 0);
  if (!std::is_permutation(perm.begin(), perm.end(), in_order.begin(), in_order.end())) {
    op.refuse(fmt::format("each of {} extents once in perm", from.dims.size()));
  }
  const View before = whole(op, from);
  View view = before;
  for (size_t i = 0; i < perm.size(); ++i) {
    view.dims[i] = before.dims[static_cast<size_t>(perm[i])];
    view.strides[i] = before.strides[static_cast<size_t>(perm[i])];
  }
  return viewed(converter, op, from, view);
}

OnnxValue fold_shape(Converter& converter, const Operator& op) {
  return shape_value(op, constant_input(converter, op, 0).dims);
}

OnnxValue fold_gather(Converter& converter, const Operator& op) {
  const std::vector<int64_t>& from = converter.integers(op, 0);
  const std::vector<int64_t>& places = converter.integers(op, 1);
  if (op.integer("axis", 0) != 0 || constant_input(converter, op, 0).dims.size() != 1)
    op.refuse("places in a list (axis 0)");
  OnnxConstant made;
  made.dims = constant_input(converter, op, 1).dims;
  std::vector<int64_t> values;
  for (const int64_t place : places) {
    const int64_t at = place < 0 ? place + static_cast<int64_t>(from.size()) : place;
    if (at < 0 || at >= static_cast<int64_t>(from.size()))
      op.refuse(fmt::format("places in 0..{}, got {}", from.size(), place));
    values.push_back(from[static_cast<size_t>(at)]);
  }
  made.set(std::move(values));
  return converter.folded(op, std::move(made));
}

OnnxValue fold_concat(Converter& converter, const Operator& op) {
  std::vector<int64_t> all;
  for (int i = 0; i < op.node.input_size(); ++i) {
    const std::vector<int64_t>& part = converter.integers(op, i);
    const int64_t axis = op.integer("axis", 0);
    if (constant_input(converter, op, i).dims.size() != 1 || (axis != 0 && axis != -1)) op.refuse("lists (axis 0)");
    all.insert(all.end(), part.begin(), part.end());
    if (static_cast<int64_t>(all.size()) > kMostIntegers) op.refuse("a shorter list");
  }
  return converter.folded(op, integer_list(std::move(all)));
}

// One axis of a slice; first and last as ONNX counts them, which may be far outside.
void slice_axis(const Operator& op, View& view, size_t axis, int64_t first, int64_t last, int64_t step) {
  const int64_t extent = view.dims[axis];
  if (step == 0) op.refuse("a step other than 0");
  step = std::clamp(step, -extent - 1, extent + 1);
  const int64_t lowest = step < 0 ? -1 : 0;  // behind the end, where it goes backwards
  const auto place = [&](int64_t at) {
    return std::clamp(at < 0 ? std::max(at, -extent - 1) + extent : at, lowest, extent + lowest);
  };
  first = std::max(place(first), int64_t{0});
  last = place(last);
  const int64_t covered = step > 0 ? last - first : first - last;
  view.dims[axis] = covered <= 0 ? 0 : (covered - 1) / std::abs(step) + 1;
  view.first += first * view.strides[axis];
  view.strides[axis] *= step;
}

// Starts, ends and axes are attributes before opset 10, then inputs, with steps.
OnnxValue fold_slice(Converter& converter, const Operator& op) {
  const OnnxConstant& from = constant_input(converter, op, 0);
  const auto part = [&](const char* name, int index) {
    if (op.opset < 10) return op.integers(name).value_or(std::vector<int64_t>{});
    return op.has_input(index) ? converter.integers(op, index) : std::vector<int64_t>{};
  };
  const std::vector<int64_t> starts = part("starts", 1), ends = part("ends", 2);
  std::vector<int64_t> axes = part("axes", 3), steps = part("steps", 4);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    op.refuse("a start, an end and a step for each axis");
  }
  const auto rank = static_cast<int64_t>(from.dims.size());
  View view = whole(op, from);
  std::vector<bool> is_cut(from.dims.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 && axes[i] >= -rank ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank || is_cut[static_cast<size_t>(axis)]) {
      op.refuse(fmt::format("different axes of {} extents", rank));
    }
    is_cut[static_cast<size_t>(axis)] = true;
    slice_axis(op, view, static_cast<size_t>(axis), starts[i], ends[i], steps[i]);
  }
  return viewed(converter, op, from, view);
}

OnnxValue fold_constant_of_shape(Converter& converter, const Operator& op) {
  int64_t count = 1;
  for (const int64_t extent : converter.integers(op, 0)) {
    if (extent < 0 || extent > kMostIntegers || (count *= extent) > kMostIntegers) op.refuse("a small shape");
  }
  OnnxConstant one;
  one.set(std::vector<float>{0});
  if (const onnx::Attribute* value = op.find("value")) one = converter.constant(op, value->t());
  if (one.count() != 1) op.refuse("one number to repeat");
  OnnxConstant made;
  made.dims = converter.integers(op, 0);
  if (one.is_float()) {
    made.set(std::vector<float>(static_cast<size_t>(count), one.floats()[0]));
  } else {
    made.set(std::vector<int64_t>(static_cast<size_t>(count), one.integers()[0]));
  }
  return converter.folded(op, std::move(made));
}

int64_t combined(const Operator& op, int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (a < -kMost || a > kMost || b < -kMost || b > kMost) op.refuse("smaller numbers in a shape");
  const std::string& type = op.node.op_type();
  if (type == "Add") return a + b;
  if (type == "Sub") return a - b;
  if (type == "Mul") {
    if (a != 0 && std::abs(b) > kMost / std::abs(a)) op.refuse("smaller numbers in a shape");
    return a * b;
  }
  if (b == 0) op.refuse("a divisor other than 0");
  return a / b;
}

// Sums and products of whole numbers, one by one, or all with one.
OnnxValue fold_arithmetic(Converter& converter, const Operator& op) {
  const std::vector<int64_t>& a = converter.integers(op, 0);
  const std::vector<int64_t>& b = converter.integers(op, 1);
  if (a.empty() || b.empty() || (a.size() != b.size() && a.size() != 1 && b.size() != 1))
    op.refuse("lists of one length");
  OnnxConstant made;
  made.dims = constant_input(converter, op, a.size() >= b.size() ? 0 : 1).dims;
  const bool is_one_by_one = a.size() > 1 && b.size() > 1;
  if (is_one_by_one && constant_input(converter, op, 1).dims != made.dims) op.refuse("equal extents");
  std::vector<int64_t> values(std::max(a.size(), b.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = combined(op, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
  }
  made.set(std::move(values));
  return converter.folded(op, std::move(made));
}

}  // namespace

OnnxValue shape_value(const Operator& op, const std::vector<int64_t>& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  const auto place = [&](int64_t at) { return std::clamp(at < 0 ? std::max(at, -rank) + rank : at, int64_t{0}, rank); };
  const int64_t first = place(op.integer("start", 0)), last = std::max(first, place(op.integer("end", rank)));
  return constant_value(integer_list({dims.begin() + first, dims.begin() + last}));
}

ConvertOperator find_constant_operator(const std::string& op_type) {
  static const std::unordered_map<std::string, ConvertOperator> table = {
      {"Constant", fold_constant},
      {"Identity", fold_same},
      {"Dropout", fold_same},
      {"Cast", fold_cast},
      {"Reshape", fold_reshape},
      {"Unsqueeze", fold_unsqueeze},
      {"Squeeze", fold_squeeze},
      {"Transpose", fold_transpose},
      {"Shape", fold_shape},
      {"Gather", fold_gather},
      {"Concat", fold_concat},
      {"Slice", fold_slice},
      {"Add", fold_arithmetic},
      {"Sub", fold_arithmetic},
      {"Mul", fold_arithmetic},
      {"Div", fold_arithmetic},
      {"ConstantOfShape", fold_constant_of_shape},
      {"DequantizeLinear", fold_dequantize},
  };
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace onetap
