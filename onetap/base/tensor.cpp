#include "onetap/base/tensor.h"

#include "onetap/base/fail.h"

namespace onetap {
namespace {

size_t byte_count(DType dtype, const std::vector<int64_t>& shape) {
  if (shape.empty()) return 0;
  size_t bytes = dtype_bytes(dtype);
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes)) {
      fail("[tensor] expected extents of a tensor that fits memory, got {}", extent);
    }
  }
  return bytes;
}

}  // namespace

const std::vector<DTypeInfo>& dtype_table() {
  static const std::vector<DTypeInfo> table = {
      {DType::kF64, "F64", 8}, {DType::kF32, "F32", 4},   {DType::kF16, "F16", 2}, {DType::kBF16, "BF16", 2},
      {DType::kI64, "I64", 8}, {DType::kI32, "I32", 4},   {DType::kI16, "I16", 2}, {DType::kI8, "I8", 1},
      {DType::kU8, "U8", 1},   {DType::kBool, "BOOL", 1},
  };
  return table;
}

const DTypeInfo& dtype_info(DType dtype) {
  for (const DTypeInfo& info : dtype_table()) {
    if (info.dtype == dtype) return info;
  }
  fail("[tensor] type {} is missing from the table", static_cast<int>(dtype));
}

const DTypeInfo* find_dtype(std::string_view name) {
  for (const DTypeInfo& info : dtype_table()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), bytes_(byte_count(dtype_, shape_)) {}

void Tensor::check_type(DType asked) const {
  if (asked != dtype_) fail("[tensor] expected values of type {}, got {}", dtype_name(asked), dtype_name(dtype_));
}

void Tensor::check_count(size_t given) const {
  if (given != count()) fail("[tensor] expected {} values, got {}", count(), given);
}

}  // namespace onetap
