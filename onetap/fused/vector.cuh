// Activations by fours, for the kernels of this room.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace onetap::fused::cuda {

using Half = __nv_bfloat16;

// As floats. Eight of them in 16 bits would be one wider read, but what a norm knows of eight channels takes so many
// registers that too few threads are left to hide the memory's latency.
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
  static constexpr int kSize = 4;
  float v[4];
  __device__ static Vector load(const Half* from) {
    const uint2 raw = *reinterpret_cast<const uint2*>(from);
    const auto low = [](uint32_t pair) { return __uint_as_float(pair << 16); };
    const auto high = [](uint32_t pair) { return __uint_as_float(pair & 0xFFFF0000u); };
    return {{low(raw.x), high(raw.x), low(raw.y), high(raw.y)}};
  }
  __device__ void store(Half* to) const {
    const auto pair = [](float low, float high) {
      const __nv_bfloat162 rounded = __floats2bfloat162_rn(low, high);
      return *reinterpret_cast<const uint32_t*>(&rounded);
    };
    *reinterpret_cast<uint2*>(to) = make_uint2(pair(v[0], v[1]), pair(v[2], v[3]));
  }
};

inline __device__ float to_float(float x) { return x; }
inline __device__ float to_float(Half x) { return __bfloat162float(x); }
inline __device__ void put(float x, float* to) { *to = x; }
inline __device__ void put(float x, Half* to) { *to = __float2bfloat16_rn(x); }

}  // namespace onetap::fused::cuda
