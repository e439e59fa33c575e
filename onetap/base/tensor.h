// Number types and tensors that know theirs: what files hold, and what the half without LibTorch computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace onetap {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

// One row of the table of types: a new type is a row of tensor.cpp, and whoever asks for its size or name finds it
// there.
struct DTypeInfo {
  DType dtype;
  const char* name;  // as safetensors spells it: "F32", "I64", ...
  size_t bytes;
};
const std::vector<DTypeInfo>& dtype_table();
const DTypeInfo& dtype_info(DType dtype);
const DTypeInfo* find_dtype(std::string_view name);

inline const char* dtype_name(DType dtype) {
  return dtype_info(dtype).name;
}
inline size_t dtype_bytes(DType dtype) {
  return dtype_info(dtype).bytes;
}

// The DType of a C++ type; there is none for F16 and BF16, which C++17 does not know.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kI16;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kI8;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};

// A row-major tensor that owns its bytes. An absent one has no shape and no bytes.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, std::vector<int64_t> shape);  // zeros
  // Of a vector's values; they must be as many as the shape says.
  template <typename T>
  static Tensor of(const std::vector<T>& values, std::vector<int64_t> shape) {
    Tensor tensor(DTypeOf<T>::value, std::move(shape));
    tensor.check_count(values.size());
    if (!values.empty()) std::memcpy(tensor.bytes_.data(), values.data(), tensor.bytes_.size());
    return tensor;
  }

  bool empty() const { return bytes_.empty(); }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  size_t count() const { return bytes_.size() / dtype_bytes(dtype_); }
  size_t bytes() const { return bytes_.size(); }
  const std::byte* raw() const { return bytes_.data(); }
  std::byte* raw() { return bytes_.data(); }

  // Its values, null if it is empty; kFailure if they are of another type.
  template <typename T>
  const T* data() const {
    check_type(DTypeOf<T>::value);
    return empty() ? nullptr : reinterpret_cast<const T*>(bytes_.data());
  }
  template <typename T>
  T* data() {
    check_type(DTypeOf<T>::value);
    return empty() ? nullptr : reinterpret_cast<T*>(bytes_.data());
  }

  bool operator==(const Tensor& other) const {
    return dtype_ == other.dtype_ && shape_ == other.shape_ && bytes_ == other.bytes_;
  }
  bool operator!=(const Tensor& other) const { return !(*this == other); }

 private:
  void check_type(DType asked) const;
  void check_count(size_t given) const;

  DType dtype_ = DType::kF32;
  std::vector<int64_t> shape_;
  std::vector<std::byte> bytes_;  // from operator new: aligned for every type above
};

}  // namespace onetap
