// Activations by 16 bytes, for the kernels of this room.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace onetap::fused::cuda {

using Half = __nv_bfloat16;

// 16 bytes of activations as floats.
template <typename T>
struct Vector;

template <>
struct Vector<float> {
  static constexpr int kSize = 4;
  float v[4];
  __device__ static Vector load(const float* from) {
    const float4 raw = *reinterpret_cast<const float4*>(from);
    return {{raw.x, raw.y, raw.z, raw.w}};
  }
  __device__ void store(float* to) const { *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]); }
};

template <>
struct Vector<Half> {
  static constexpr int kSize = 8;
  float v[8];
  __device__ static Vector load(const Half* from) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
    Vector out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out.v[2 * i] = __uint_as_float(words[i] << 16);
      out.v[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000u);
    }
    return out;
  }
  __device__ void store(Half* to) const {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
      words[i] = *reinterpret_cast<const uint32_t*>(&pair);
    }
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  }
};

inline __device__ float to_float(float x) { return x; }
inline __device__ float to_float(Half x) { return __bfloat162float(x); }
inline __device__ void put(float x, float* to) { *to = x; }
inline __device__ void put(float x, Half* to) { *to = __float2bfloat16_rn(x); }

}  // namespace onetap::fused::cuda
