// One activation in memory: a 32-bit float or a bfloat16.
#pragma once

#include <cuda_bf16.h>

namespace onetap::cuda {

using Half = __nv_bfloat16;

// with(Type()) for the activations' type: 32 bits wide or half of that.
template <typename With>
void of_type(bool wide, const With& with) {
  wide ? with(float{}) : with(Half{});
}

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

}  // namespace onetap::cuda
