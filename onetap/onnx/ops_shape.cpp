// Operators that change shapes, and those that change nothing.
#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/onnx/converter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace onetap {
namespace {

using Dims = std::vector<int64_t>;

OnnxValue convert_same(Converter& converter, const Operator& op) {
  return converter.computed(op, 0);
}

OnnxValue convert_dropout(Converter& converter, const Operator& op) {
  if (op.has_input(2) && converter.integers(op, 2) != Dims{0}) op.refuse("training_mode false (a model in eval mode)");
  return converter.computed(op, 0);
}

OnnxValue convert_cast(Converter& converter, const Operator& op) {
  if (op.integer("to", onnx::Tensor::FLOAT) != onnx::Tensor::FLOAT) op.refuse("a network of 32-bit floats");
  return converter.computed(op, 0);
}

// With the batch: that of the model, or 1 where it leaves it open.
Dims batched(const Converter& converter, const OnnxValue& x) {
  Dims dims = x.dims;
  dims.insert(dims.begin(), converter.batch());
  return dims;
}

OnnxValue convert_shape(Converter& converter, const Operator& op) {
  return shape_value(op, batched(converter, converter.computed(op, 0)));
}

OnnxValue convert_flatten(Converter& converter, const Operator& op) {
  const OnnxValue& x = converter.computed(op, 0);
  const int64_t axis = op.integer("axis", 1);
  if (axis != 1 && axis != -static_cast<int64_t>(x.dims.size())) op.refuse(fmt::format("axis 1, got {}", axis));
  return reshaped(converter, op, x, {element_count(x.dims)});
}

// To extents with the batch in front.
OnnxValue with_batched_dims(Converter& converter, const Operator& op, const OnnxValue& x, const Dims& dims) {
  if (dims.size() < 2 || dims[0] != converter.batch()) {
    op.refuse(fmt::format("a shape that begins with the batch ({}) and has more dimensions, got [{}]",
                          converter.batch(), shape_text(dims)));
  }
  return reshaped(converter, op, x, Dims(dims.begin() + 1, dims.end()));
}

OnnxValue convert_reshape(Converter& converter, const Operator& op) {
  const OnnxValue& x = converter.computed(op, 0);
  const Dims from = batched(converter, x);
  Dims dims = converter.integers(op, 1);
  op.check_extents(dims.size());
  const int64_t whole = element_count(from);
  int64_t known = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && op.integer("allowzero", 0) == 0 && i < from.size()) dims[i] = from[i];
    if (dims[i] < -1 || dims[i] == 0 || dims[i] > whole) op.refuse(fmt::format("a shape of {} numbers", whole));
    if (dims[i] < 0) continue;
    if (known > whole / dims[i]) op.refuse(fmt::format("a shape of {} numbers", whole));
    known *= dims[i];
  }
  if (std::count(dims.begin(), dims.end(), -1) > 1) op.refuse("at most one extent left open (-1)");
  for (int64_t& extent : dims) {
    if (extent == -1) extent = whole / known;
  }
  return with_batched_dims(converter, op, x, dims);
}

OnnxValue convert_squeeze(Converter& converter, const Operator& op) {
  const OnnxValue& x = converter.computed(op, 0);
  return with_batched_dims(converter, op, x, converter.squeezed(op, batched(converter, x), 1));
}

OnnxValue convert_unsqueeze(Converter& converter, const Operator& op) {
  const OnnxValue& x = converter.computed(op, 0);
  return with_batched_dims(converter, op, x, converter.unsqueezed(op, batched(converter, x)));
}

OnnxValue convert_transpose(Converter& converter, const Operator& op) {
  const OnnxValue& x = converter.computed(op, 0);
  const Dims perm = op.integers("perm").value_or(Dims{});
  bool is_same = perm.size() == x.dims.size() + 1;
  for (size_t i = 0; i < perm.size(); ++i) is_same = is_same && perm[i] == static_cast<int64_t>(i);
  if (!is_same) op.refuse("extents in their order (batch, channels, rows, columns)");
  return x;
}

// --- pixels taken away and added

// Channels of zeros in front and behind: what shortcuts without weights do.
OnnxValue pad_channels(Converter& converter, const Operator& op, const OnnxValue& x, int64_t front, int64_t behind) {
  const int64_t in = x.dims[0];
  Draft draft;
  draft.node = default_node(Op::kSubsample);
  constexpr int64_t kMost = 1 << 20;
  if (front < 0 || behind < 0 || front > kMost || behind > kMost || in + front + behind > kMost ||
      front != (front + behind) / 2) {
    op.refuse(fmt::format("as many channels of zeros in front as behind, got {} and {}", front, behind));
  }
  draft.node.out = in + front + behind;
  OnnxValue from = x;
  const Draft& source = converter.draft(x);
  if (!source.rounding && source.node.op == Op::kSubsample && source.node.out == converter.shape(x)[0] &&
      converter.has_one_reader(op.node.input(0))) {
    OnnxValue before;
    before.draft = source.inputs[0];
    if (converter.shape(before)[0] == in) {  // it took every stride-th pixel alone
      draft.node.stride = source.node.stride;
      from = before;
    }
  }
  return converter.add(op, std::move(draft), {from});
}

OnnxValue convert_pad(Converter& converter, const Operator& op) {
  const OnnxValue x = converter.computed(op, 0);
  if (op.word("mode", "constant") != "constant") op.refuse("mode constant, got " + op.word("mode", "constant"));
  const size_t rank = x.dims.size() + 1;
  Dims given = op.opset < 11 ? op.integers("pads").value_or(Dims{}) : converter.integers(op, 1);
  float value = op.opset < 11 ? op.real("value", 0) : 0;
  if (op.opset >= 11 && op.has_input(2)) {
    if (converter.floats(op, 2).count() != 1) op.refuse("one number to pad with");
    value = converter.floats(op, 2).floats()[0];
  }
  Dims pads = given;
  if (op.opset >= 18 && op.has_input(3)) {
    const Dims& axes = converter.integers(op, 3);
    if (axes.size() > rank) op.refuse(fmt::format("at most {} axes, got {}", rank, axes.size()));
    if (given.size() != 2 * axes.size()) op.refuse("two pads per axis");
    pads.assign(2 * rank, 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank) : axes[i];
      if (axis < 0 || axis >= static_cast<int64_t>(rank)) op.refuse("axes of the image");
      pads[static_cast<size_t>(axis)] = given[i];
      pads[static_cast<size_t>(axis) + rank] = given[i + axes.size()];
    }
  }
  if (rank != 4 || pads.size() != 8 || converter.shape(x).size() != 3)
    op.refuse("an image, and a number before and behind each extent");
  if (pads[0] != 0 || pads[4] != 0) op.refuse("no padding of the batch");
  const Sides sides{pads[2], pads[3], pads[6], pads[7]};
  if (pads[1] != 0 || pads[5] != 0) {
    if (!sides.is_zero() || value != 0) op.refuse("zeros around the image or around the channels, not both");
    return pad_channels(converter, op, x, pads[1], pads[5]);
  }
  if (sides.is_zero()) return x;
  if (value != 0 && value > std::numeric_limits<float>::lowest()) {
    op.refuse(fmt::format("padding with 0 or with the lowest number, got {}", value));
  }
  return add_pad(converter, op, x, sides, value == 0 ? PadFill::kZero : PadFill::kLowest);
}

// Every step-th row and column. Before opset 10 there are no steps, and all are attributes.
OnnxValue convert_slice(Converter& converter, const Operator& op) {
  const OnnxValue x = converter.computed(op, 0);
  const auto part = [&](const char* name, int index) -> Dims {
    if (op.opset < 10) return op.integers(name).value_or(Dims{});
    return op.has_input(index) ? converter.integers(op, index) : Dims{};
  };
  const Dims starts = part("starts", 1), ends = part("ends", 2), steps = part("steps", 4);
  Dims axes = part("axes", 3);
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  const Dims dims = batched(converter, x);
  Draft draft;
  draft.node = default_node(Op::kSubsample);
  draft.node.out = x.dims[0];
  bool is_whole = axes.size() <= dims.size() && ends.size() == starts.size() && axes.size() == starts.size() &&
                  (steps.empty() || steps.size() == starts.size());
  for (size_t i = 0; is_whole && i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(dims.size()) : axes[i];
    const int64_t step = steps.empty() ? 1 : steps[i];
    is_whole = axis >= 0 && axis < static_cast<int64_t>(dims.size()) && starts[i] == 0 && step >= 1 &&
               ends[i] >= dims[static_cast<size_t>(axis)] && (step == 1 || (dims.size() == 4 && axis >= 2));
    if (!is_whole) break;
    if (axis == 2) draft.node.stride.h = step;
    if (axis == 3) draft.node.stride.w = step;
  }
  if (!is_whole) op.refuse("every step-th row and column of the whole image");
  if (draft.node.stride == Extent2{1, 1}) return x;
  return converter.add(op, std::move(draft), {x});
}

}  // namespace

OnnxValue reshaped(Converter& converter, const Operator& op, const OnnxValue& x, const Dims& dims) {
  const bool fits = element_count(dims) == element_count(x.dims);
  if (fits && dims == x.dims) return x;
  // One number per channel, with any number of extents of 1 behind.
  const bool is_vector = fits && !dims.empty() && dims.size() <= 3 && dims[0] == element_count(dims) &&
                         (dims.size() == 1 || dims[0] == x.dims[0]);
  if (!is_vector) op.refuse(fmt::format("{} flattened or as it is, got {}", shape_text(x.dims), shape_text(dims)));
  OnnxValue value = converter.shape(x).size() == 1 ? x : converter.add(op, Op::kFlatten, {x});
  value.dims = dims;
  return value;
}

Sides padding_of(const Operator& op, const Dims& image, Extent2 span, Extent2 stride) {
  constexpr int64_t kMost = 1 << 20;
  if (span.h < 1 || span.w < 1 || stride.h < 1 || stride.w < 1 || span.h > kMost || span.w > kMost) {
    op.refuse("a kernel, strides and dilations of 1 or more");
  }
  const std::string rule = op.word("auto_pad", "NOTSET");
  Sides sides;
  if (rule == "SAME_UPPER" || rule == "SAME_LOWER") {
    const auto missing = [](int64_t extent, int64_t width, int64_t step) {
      return std::max<int64_t>(((extent + step - 1) / step - 1) * step + width - extent, 0);
    };
    const int64_t rows = missing(image[1], span.h, stride.h), columns = missing(image[2], span.w, stride.w);
    const int64_t odd = rule == "SAME_LOWER" ? 1 : 0;  // the larger half comes before the image
    sides.top = (rows + odd) / 2;
    sides.bottom = rows - sides.top;
    sides.left = (columns + odd) / 2;
    sides.right = columns - sides.left;
  } else if (rule == "NOTSET") {
    if (const auto pads = op.integers("pads")) {
      if (pads->size() != 4) op.refuse(fmt::format("four pads, got {}", pads->size()));
      sides = {(*pads)[0], (*pads)[1], (*pads)[2], (*pads)[3]};
    }
  } else if (rule != "VALID") {
    op.refuse(fmt::format("auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER, got '{}'", rule));
  }
  for (const int64_t side : {sides.top, sides.left, sides.bottom, sides.right}) {
    if (side < 0 || side > 1024) op.refuse(fmt::format("pads in 0..1024, got {}", side));
  }
  return sides;
}

OnnxValue add_pad(Converter& converter, const Operator& op, const OnnxValue& x, const Sides& sides, PadFill fill) {
  Draft draft;
  draft.node = default_node(Op::kPad);
  draft.node.sides = {sides.top, sides.left, sides.bottom, sides.right};
  draft.node.fill = fill;
  return converter.add(op, std::move(draft), {x});
}

ConvertOperator find_shape_operator(const std::string& op_type) {
  static const std::unordered_map<std::string, ConvertOperator> table = {
      {"Identity", convert_same},   {"Dropout", convert_dropout},     {"Cast", convert_cast},
      {"Shape", convert_shape},     {"Flatten", convert_flatten},     {"Reshape", convert_reshape},
      {"Squeeze", convert_squeeze}, {"Unsqueeze", convert_unsqueeze}, {"Transpose", convert_transpose},
      {"Pad", convert_pad},         {"Slice", convert_slice},
  };
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace onetap
