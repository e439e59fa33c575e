// Images of a batch mixed in pairs.
#include "onetap/data/mix.h"
#include "onetap/fused/kernels.h"
#include "onetap/fused/vector.cuh"

#include <algorithm>

namespace onetap::fused::cuda {
namespace {

constexpr int kMixThreads = 256;

// Some blocks for each image.
template <typename T>
__global__ void mix_kernel(MixArguments a) {
  const Mix mix{a.mix[0], a.mix[1], a.mix[2], a.mix[3], a.mix[4], a.mix[5]};
  const int width = static_cast<int>(a.width), channels = static_cast<int>(a.channels);
  const int values = static_cast<int>(a.height) * width * channels;
  const int64_t n = blockIdx.x, pair = a.count - 1 - n;
  const T* own = static_cast<const T*>(a.images) + n * values;
  const T* other = static_cast<const T*>(a.images) + pair * values;
  T* out = static_cast<T*>(a.out) + n * values;
  for (int i = blockIdx.y * kMixThreads + threadIdx.x; i < values; i += gridDim.y * kMixThreads) {
    const int pixel = i / channels;
    if (mix.covers(pixel / width, pixel % width)) {
      out[i] = other[i];
    } else if (mix.weight == 1.0f) {
      out[i] = own[i];
    } else {
      put(__fadd_rn(__fmul_rn(to_float(own[i]), mix.weight), __fmul_rn(to_float(other[i]), 1.0f - mix.weight)),
          out + i);
    }
  }
}

}  // namespace

void mix(const MixArguments& arguments, cudaStream_t stream) {
  const int64_t values = arguments.height * arguments.width * arguments.channels;
  const int64_t pieces = std::min<int64_t>((values + kMixThreads - 1) / kMixThreads, 32);
  const dim3 blocks(static_cast<unsigned>(arguments.count), static_cast<unsigned>(pieces));
  of_type(arguments.wide,
          [&](auto zero) { mix_kernel<decltype(zero)><<<blocks, kMixThreads, 0, stream>>>(arguments); });
}

}  // namespace onetap::fused::cuda
