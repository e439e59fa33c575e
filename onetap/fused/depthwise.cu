// Convolutions of every channel by itself.
#include "onetap/fused/pixels.cuh"

namespace onetap::fused::cuda {
namespace {

// The kernel of one channel, which its thread keeps.
template <int K>
struct Taps {
  float w[K * K];

  __device__ Taps(const DepthwiseArguments& a, int channel) {
#pragma unroll
    for (int i = 0; i < K * K; ++i) w[i] = channel < a.real ? a.weight[channel * K * K + i] : 0.0f;
  }
};

// The pixel that tap (i, j) of a result reads; zero outside.
template <typename T>
__device__ float read(const DepthwiseArguments& a, const T* x, const Pixel& result, int i, int j, int channel) {
  const int h = result.h * a.stride[0] - a.padding[0] + i * a.dilation[0];
  const int w = result.w * a.stride[1] - a.padding[1] + j * a.dilation[1];
  return is_inside(h, w, a.images) ? to_float(x[place(a.images, result.image, h, w, channel)]) : 0.0f;
}

__device__ int64_t results_of(const DepthwiseArguments& a) {
  return a.images.count * a.out_height * a.out_width;
}

template <typename T, int K>
__global__ void __launch_bounds__(kThreads) depthwise_kernel(DepthwiseArguments a, const T* x, T* y) {
  const int channel = own_channel();
  if (channel >= a.images.channels) return;
  const Taps<K> taps(a, channel);
  for (int64_t at = first_pixel(); at < results_of(a); at += pixel_step()) {
    const Pixel pixel(at, a.out_height, a.out_width);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < K; ++i) {
#pragma unroll
      for (int j = 0; j < K; ++j) sum = fmaf(read(a, x, pixel, i, j, channel), taps.w[i * K + j], sum);
    }
    put(sum, y + at * a.images.channels + channel);
  }
}

// A pixel asks for every tap which result has read it.
template <typename T, int K>
__global__ void __launch_bounds__(kThreads) depthwise_input_grad_kernel(DepthwiseArguments a, const T* dy, T* dx) {
  const int channel = own_channel();
  if (channel >= a.images.channels) return;
  const Taps<K> taps(a, channel);
  const int64_t pixels = a.images.count * a.images.height * a.images.width;
  for (int64_t at = first_pixel(); at < pixels; at += pixel_step()) {
    const Pixel pixel(at, a.images.height, a.images.width);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < K; ++i) {
      const int down = pixel.h + a.padding[0] - i * a.dilation[0], h = down / a.stride[0];
      const bool has_row = down >= 0 && h * a.stride[0] == down && h < a.out_height;
#pragma unroll
      for (int j = 0; j < K; ++j) {
        const int right = pixel.w + a.padding[1] - j * a.dilation[1], w = right / a.stride[1];
        const bool has = has_row && right >= 0 && w * a.stride[1] == right && w < a.out_width;
        const int64_t from = ((pixel.image * a.out_height + h) * a.out_width + w) * a.images.channels + channel;
        sum = fmaf(has ? to_float(dy[from]) : 0.0f, taps.w[i * K + j], sum);
      }
    }
    put(sum, dx + at * a.images.channels + channel);
  }
}

template <typename T, int K>
__global__ void __launch_bounds__(kThreads)
    depthwise_weight_grad_kernel(DepthwiseArguments a, const T* dy, const T* x, float* parts) {
  __shared__ float others[kThreads];
  const int channel = own_channel(), thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  float sums[K * K] = {};
  if (channel < a.real) {
    for (int64_t at = first_pixel(); at < results_of(a); at += pixel_step()) {
      const Pixel pixel(at, a.out_height, a.out_width);
      const float grad = to_float(dy[at * a.images.channels + channel]);
#pragma unroll
      for (int i = 0; i < K; ++i) {
#pragma unroll
        for (int j = 0; j < K; ++j) sums[i * K + j] = fmaf(grad, read(a, x, pixel, i, j, channel), sums[i * K + j]);
      }
    }
  }
  // Of the block, tap after tap.
#pragma unroll
  for (int tap = 0; tap < K * K; ++tap) {
    others[thread] = sums[tap];
    __syncthreads();
    if (threadIdx.y == 0 && channel < a.real) {
      float sum = sums[tap];
      for (unsigned i = 1; i < blockDim.y; ++i) sum += others[i * blockDim.x + threadIdx.x];
      parts[(blockIdx.x * a.real + channel) * (K * K) + tap] = sum;
    }
    __syncthreads();
  }
}

dim3 weight_grad_grid(const DepthwiseArguments& a) {
  return grid_of(a.images.channels, a.images.count * a.out_height * a.out_width, kSumBlocks);
}

// with(Type(), std::integral_constant of the kernel's side)
template <typename With>
void of_kernel(const DepthwiseArguments& a, const With& with) {
  of_type(a.images.wide, [&](auto zero) {
    a.kernel == 5 ? with(zero, std::integral_constant<int, 5>()) : with(zero, std::integral_constant<int, 3>());
  });
}

}  // namespace

void depthwise(const DepthwiseArguments& a, const void* x, void* y, cudaStream_t stream) {
  of_kernel(a, [&](auto zero, auto side) {
    using T = decltype(zero);
    const dim3 grid = grid_of(a.images.channels, a.images.count * a.out_height * a.out_width, kMostBlocks);
    depthwise_kernel<T, decltype(side)::value>
        <<<grid, block_of(a.images.channels), 0, stream>>>(a, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void depthwise_input_grad(const DepthwiseArguments& a, const void* dy, void* dx, cudaStream_t stream) {
  of_kernel(a, [&](auto zero, auto side) {
    using T = decltype(zero);
    const dim3 grid = grid_of(a.images.channels, pixels_of(a.images), kMostBlocks);
    depthwise_input_grad_kernel<T, decltype(side)::value>
        <<<grid, block_of(a.images.channels), 0, stream>>>(a, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

int64_t depthwise_parts(const DepthwiseArguments& arguments) {
  return weight_grad_grid(arguments).x;
}

void depthwise_weight_grad(const DepthwiseArguments& a, const void* dy, const void* x, float* parts,
                           cudaStream_t stream) {
  of_kernel(a, [&](auto zero, auto side) {
    using T = decltype(zero);
    depthwise_weight_grad_kernel<T, decltype(side)::value>
        <<<weight_grad_grid(a), block_of(a.images.channels), 0, stream>>>(a, static_cast<const T*>(dy),
                                                                          static_cast<const T*>(x), parts);
  });
}

}  // namespace onetap::fused::cuda
