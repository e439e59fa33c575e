// Activations by fours and eights, for the kernels of this module.
#pragma once

#include "onetap/batches/activation.cuh"

#include <cstdint>

namespace onetap::fused::cuda {

using onetap::cuda::Half;
using onetap::cuda::of_type;
using onetap::cuda::put;
using onetap::cuda::to_float;

inline __device__ float low_half(uint32_t pair) {
  return __uint_as_float(pair << 16);
}
inline __device__ float high_half(uint32_t pair) {
  return __uint_as_float(pair & 0xFFFF0000u);
}
inline __device__ uint32_t halves(float low, float high) {
  const __nv_bfloat162 rounded = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&rounded);
}

// N neighbouring activations as floats. Raw: as they lie in memory.
template <typename T, int N>
struct Vector;

template <>
struct Vector<float, 4> {
  using Element = float;
  using Raw = float4;
  static constexpr int kSize = 4;
  float v[4];
  __device__ static Vector of(const Raw& raw) { return {{raw.x, raw.y, raw.z, raw.w}}; }
  __device__ Raw raw() const { return make_float4(v[0], v[1], v[2], v[3]); }
};

template <>
struct Vector<Half, 4> {
  using Element = Half;
  using Raw = uint2;
  static constexpr int kSize = 4;
  float v[4];
  __device__ static Vector of(const Raw& raw) {
    return {{low_half(raw.x), high_half(raw.x), low_half(raw.y), high_half(raw.y)}};
  }
  __device__ Raw raw() const { return make_uint2(halves(v[0], v[1]), halves(v[2], v[3])); }
};

template <>
struct Vector<Half, 8> {
  using Element = Half;
  using Raw = uint4;
  static constexpr int kSize = 8;
  float v[8];
  __device__ static Vector of(const Raw& raw) {
    return {{low_half(raw.x), high_half(raw.x), low_half(raw.y), high_half(raw.y), low_half(raw.z), high_half(raw.z),
             low_half(raw.w), high_half(raw.w)}};
  }
  __device__ Raw raw() const {
    return make_uint4(halves(v[0], v[1]), halves(v[2], v[3]), halves(v[4], v[5]), halves(v[6], v[7]));
  }
};

// Those from `at` on. `again`: whether anything reads the same soon; if not, the cache need not keep it.
template <typename V>
__device__ V load(const void* from, int64_t at, bool again = true) {
  const auto* place = static_cast<const typename V::Raw*>(from) + at / V::kSize;
  return V::of(again ? *place : __ldcs(place));
}
template <typename V>
__device__ void store(const V& vector, void* to, int64_t at) {
  static_cast<typename V::Raw*>(to)[at / V::kSize] = vector.raw();
}

}  // namespace onetap::fused::cuda
