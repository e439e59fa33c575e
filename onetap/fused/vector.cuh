// Activations by fours and eights, for the kernels of this room.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>

namespace onetap::fused::cuda {

using Half = __nv_bfloat16;

// with(Type()) for the activations' type: 32 bits wide or half of that.
template <typename With>
void of_type(bool wide, const With& with) {
  wide ? with(float{}) : with(Half{});
}

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

// `again`: whether anything reads the same soon; if not, the cache need not keep it.
template <typename Raw>
__device__ Raw read(const void* from, int64_t index, bool again) {
  const Raw* place = static_cast<const Raw*>(from) + index;
  return again ? *place : __ldcs(place);
}

// N neighbouring activations as floats, read and written at once: those from `at` on.
template <typename T, int N>
struct Vector;

template <>
struct Vector<float, 4> {
  using Element = float;
  static constexpr int kSize = 4;
  float v[4];
  __device__ static Vector load(const void* from, int64_t at, bool again = true) {
    const float4 raw = read<float4>(from, at / kSize, again);
    return {{raw.x, raw.y, raw.z, raw.w}};
  }
  __device__ void store(void* to, int64_t at) const {
    static_cast<float4*>(to)[at / kSize] = make_float4(v[0], v[1], v[2], v[3]);
  }
};

template <>
struct Vector<Half, 4> {
  using Element = Half;
  static constexpr int kSize = 4;
  float v[4];
  __device__ static Vector load(const void* from, int64_t at, bool again = true) {
    const uint2 raw = read<uint2>(from, at / kSize, again);
    return {{low_half(raw.x), high_half(raw.x), low_half(raw.y), high_half(raw.y)}};
  }
  __device__ void store(void* to, int64_t at) const {
    static_cast<uint2*>(to)[at / kSize] = make_uint2(halves(v[0], v[1]), halves(v[2], v[3]));
  }
};

template <>
struct Vector<Half, 8> {
  using Element = Half;
  static constexpr int kSize = 8;
  float v[8];
  __device__ static Vector load(const void* from, int64_t at, bool again = true) {
    const uint4 raw = read<uint4>(from, at / kSize, again);
    return {{low_half(raw.x), high_half(raw.x), low_half(raw.y), high_half(raw.y), low_half(raw.z), high_half(raw.z),
             low_half(raw.w), high_half(raw.w)}};
  }
  __device__ void store(void* to, int64_t at) const {
    static_cast<uint4*>(to)[at / kSize] =
        make_uint4(halves(v[0], v[1]), halves(v[2], v[3]), halves(v[4], v[5]), halves(v[6], v[7]));
  }
};

inline __device__ float to_float(float x) {
  return x;
}
inline __device__ float to_float(Half x) {
  return __bfloat162float(x);
}
inline __device__ void put(float x, float* to) {
  *to = x;
}
inline __device__ void put(float x, Half* to) {
  *to = __float2bfloat16_rn(x);
}

}  // namespace onetap::fused::cuda
