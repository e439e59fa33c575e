// Operators of quantised models (QDQ): values that are rounded to bytes, and weights in bytes.
#include "onetap/base/fail.h"
#include "onetap/onnx/converter.h"

#include <cmath>
#include <limits>

namespace onetap {
namespace {

// Scale and zero point of a value, as inputs 1 and 2 of either operator.
OnnxRounding rounding_of(Converter& converter, const Operator& op) {
  OnnxRounding rounding;
  const OnnxConstant& scale = converter.floats(op, 1);
  if (scale.count() != 1) op.refuse(fmt::format("one scale of all channels of a value, got {}", scale.count()));
  rounding.scale = scale.floats()[0];
  if (!std::isfinite(rounding.scale) || rounding.scale < std::numeric_limits<float>::min()) {
    op.refuse(fmt::format("a finite scale above 0, got {:g}", rounding.scale));
  }
  rounding.where = op.where();
  if (!op.has_input(2)) return rounding;
  const std::vector<int64_t>& zero = converter.integers(op, 2);
  if (zero.size() != 1 || zero[0] != 0) {
    op.refuse(fmt::format("a zero point of 0 (int8 networks of onetap have no other), got {}",
                          zero.empty() ? int64_t{0} : zero[0]));
  }
  const int32_t type = converter.input(op, 2).constant->type;
  if (type != onnx::Tensor::UINT8 && type != onnx::Tensor::INT8) op.refuse("bytes (uint8 or int8), got another type");
  rounding.dtype = type == onnx::Tensor::UINT8 ? DType::kU8 : DType::kI8;
  return rounding;
}

OnnxValue convert_quantize(Converter& converter, const Operator& op) {
  OnnxValue x = converter.computed(op, 0);
  OnnxRounding rounding = rounding_of(converter, op);
  Draft& draft = converter.draft(x);
  if (!draft.rounding) {
    if (!converter.has_one_reader(op.node.input(0)) || converter.is_result(op.node.input(0))) {
      op.refuse("a value that nobody reads before it is rounded, got one with other readers");
    }
    draft.rounding = std::move(rounding);
  } else if (!(*draft.rounding == rounding)) {  // an operator between them that changes nothing
    op.refuse(fmt::format("a value to be rounded once, got it rounded by {} too", draft.rounding->where));
  }
  x.is_bytes = true;
  return x;
}

OnnxValue convert_dequantize(Converter& converter, const Operator& op) {
  OnnxValue x = converter.computed(op, 0);
  if (!x.is_bytes) op.refuse("what a QuantizeLinear gives, got floats");
  const OnnxRounding rounding = rounding_of(converter, op);
  const OnnxRounding& made = *converter.draft(x).rounding;
  if (!(made == rounding)) op.refuse(fmt::format("scale and zero point of {}, got others", made.where));
  x.is_bytes = false;
  return x;
}

}  // namespace

OnnxValue fold_dequantize(Converter& converter, const Operator& op) {
  const OnnxConstant& from = *converter.input(op, 0).constant;
  if (from.is_float()) op.refuse("constant integers, got floats");
  const OnnxConstant& scale = converter.floats(op, 1);
  const auto rank = static_cast<int64_t>(from.dims.size());
  int64_t axis = op.integer("axis", 1);
  if (axis < 0) axis += rank;
  const bool is_single = scale.count() == 1;
  if (!is_single &&
      (axis < 0 || axis >= rank || static_cast<int64_t>(scale.count()) != from.dims[static_cast<size_t>(axis)])) {
    op.refuse(fmt::format("one scale, or one for each extent of axis {}, got {}", axis, scale.count()));
  }
  const std::vector<int64_t> zeros = op.has_input(2) ? converter.integers(op, 2) : std::vector<int64_t>{0};
  if (zeros.size() != 1 && zeros.size() != scale.count()) op.refuse("a zero point for each scale");
  size_t inner = 1;  // numbers with one scale next to each other
  for (int64_t i = axis + 1; !is_single && i < rank; ++i)
    inner *= static_cast<size_t>(from.dims[static_cast<size_t>(i)]);

  auto bytes = std::make_shared<OnnxBytes>();
  bytes->scales = scale.floats();
  if (!is_single && axis != 0) bytes->problem = fmt::format("scales along axis {}, not one for each output", axis);
  OnnxConstant made;
  made.dims = from.dims;
  std::vector<float> values(from.count());
  bytes->values.resize(from.count());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t place = is_single ? 0 : i / inner % scale.count();
    const int64_t zero = zeros[zeros.size() == 1 ? 0 : place];
    if (zero != 0) bytes->problem = fmt::format("a zero point of {}, not 0", zero);
    const int64_t value = from.integers()[i];
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (value < -kMost || value > kMost || zero < -kMost || zero > kMost) op.refuse("integers of at most 32 bits");
    bytes->values[i] = static_cast<int32_t>(value);
    values[i] = static_cast<float>(value - zero) * scale.floats()[place];
  }
  made.set(std::move(values));
  made.bytes = std::move(bytes);
  return converter.folded(op, std::move(made));
}

ConvertOperator find_rounding_operator(const std::string& op_type) {
  if (op_type == "QuantizeLinear") return convert_quantize;
  return op_type == "DequantizeLinear" ? convert_dequantize : nullptr;
}

}  // namespace onetap
