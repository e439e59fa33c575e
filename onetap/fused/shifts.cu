// Channels of images that move: by whole pixels, or by two trained numbers.
#include "onetap/fused/kernels.h"
#include "onetap/fused/pixels.cuh"

namespace onetap::fused::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kThreads) shift_kernel(Images images, const int32_t* moves, const T* x, T* y) {
  const int channel = own_channel();
  if (channel >= images.channels) return;
  const int down = moves[channel], right = moves[images.channels + channel];
  const int64_t pixels = images.count * images.height * images.width;
  for (int64_t at = first_pixel(); at < pixels; at += pixel_step()) {
    const Pixel pixel(at, images.height, images.width);
    const int h = pixel.h + down, w = pixel.w + right;
    put(is_inside(h, w, images) ? to_float(x[place(images, pixel.image, h, w, channel)]) : 0.0f,
        y + at * images.channels + channel);
  }
}

// A channel's shift: whole pixels and what is left of it. Not a number stays one in what is left.
struct Split {
  int row, column;
  float dy, dx;

  __device__ Split(const ActiveShiftArguments& a, int channel) {
    const bool real = channel < a.real;
    const float rows = real ? a.weight[2 * channel] : 0.0f, columns = real ? a.weight[2 * channel + 1] : 0.0f;
    dy = rows - floorf(rows);
    dx = columns - floorf(columns);
    row = pixels(rows, a.images.height);
    column = pixels(columns, a.images.width);
  }
  // How much of the pixel i down and j to the right is in a result.
  __device__ float share(int i, int j) const { return (i == 0 ? 1 - dy : dy) * (j == 0 ? 1 - dx : dx); }

 private:
  // Nothing is read from farther away than the image is long.
  __device__ static int pixels(float shift, int64_t extent) {
    const float reach = static_cast<float>(extent + 2);
    return static_cast<int>(fmaxf(-reach, fminf(reach, floorf(shift))));
  }
};

// The four pixels around the place that a result is read from; zeros outside.
template <typename T>
struct Corners {
  float q[2][2];

  __device__ Corners(const ActiveShiftArguments& a, const T* x, const Pixel& result, const Split& split, int channel) {
    const int top = result.h * a.stride_h + split.row, left = result.w * a.stride_w + split.column;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        q[i][j] = is_inside(top + i, left + j, a.images)
                      ? to_float(x[place(a.images, result.image, top + i, left + j, channel)])
                      : 0.0f;
      }
    }
  }
};

__device__ int64_t result_pixels(const ActiveShiftArguments& a) {
  return a.images.count * a.out_height * a.out_width;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) active_shift_kernel(ActiveShiftArguments a, const T* x, T* y) {
  const int channel = own_channel();
  if (channel >= a.images.channels) return;
  const Split split(a, channel);
  for (int64_t at = first_pixel(); at < result_pixels(a); at += pixel_step()) {
    const Corners<T> corners(a, x, Pixel(at, a.out_height, a.out_width), split, channel);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) sum = fmaf(corners.q[i][j], split.share(i, j), sum);
    }
    put(sum, y + at * a.images.channels + channel);
  }
}

// A pixel asks which results it was a corner of: at most four.
template <typename T>
__global__ void __launch_bounds__(kThreads) active_shift_input_grad_kernel(ActiveShiftArguments a, const T* dy, T* dx) {
  const int channel = own_channel();
  if (channel >= a.images.channels) return;
  const Split split(a, channel);
  const int64_t pixels = a.images.count * a.images.height * a.images.width;
  for (int64_t at = first_pixel(); at < pixels; at += pixel_step()) {
    const Pixel pixel(at, a.images.height, a.images.width);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int down = pixel.h - split.row - i, h = down / a.stride_h;
      const bool has_row = down >= 0 && h * a.stride_h == down && h < a.out_height;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int right = pixel.w - split.column - j, w = right / a.stride_w;
        const bool has = has_row && right >= 0 && w * a.stride_w == right && w < a.out_width;
        const int64_t from = ((pixel.image * a.out_height + h) * a.out_width + w) * a.images.channels + channel;
        sum = fmaf(has ? to_float(dy[from]) : 0.0f, split.share(i, j), sum);
      }
    }
    put(sum, dx + at * a.images.channels + channel);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    active_shift_weight_grad_kernel(ActiveShiftArguments a, const T* dy, const T* x, float* parts) {
  __shared__ float sums[2][kThreads];
  const int channel = own_channel(), thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  float down = 0, right = 0;
  if (channel < a.real) {
    const Split split(a, channel);
    for (int64_t at = first_pixel(); at < result_pixels(a); at += pixel_step()) {
      const Corners<T> c(a, x, Pixel(at, a.out_height, a.out_width), split, channel);
      const float grad = to_float(dy[at * a.images.channels + channel]);
      down = fmaf(grad, (c.q[1][0] - c.q[0][0]) * (1 - split.dx) + (c.q[1][1] - c.q[0][1]) * split.dx, down);
      right = fmaf(grad, (c.q[0][1] - c.q[0][0]) * (1 - split.dy) + (c.q[1][1] - c.q[1][0]) * split.dy, right);
    }
  }
  sums[0][thread] = down;
  sums[1][thread] = right;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= a.real) return;
  for (unsigned i = 1; i < blockDim.y; ++i) {
    down += sums[0][i * blockDim.x + threadIdx.x];
    right += sums[1][i * blockDim.x + threadIdx.x];
  }
  float* part = parts + (blockIdx.x * a.real + channel) * 2;
  part[0] = down;
  part[1] = right;
}

dim3 weight_grad_grid(const ActiveShiftArguments& a) {
  return grid_of(a.images.channels, a.images.count * a.out_height * a.out_width, kSumBlocks);
}

}  // namespace

void shift(const Images& images, const int32_t* moves, const void* x, void* y, cudaStream_t stream) {
  of_type(images.wide, [&](auto zero) {
    using T = decltype(zero);
    shift_kernel<T><<<grid_of(images.channels, pixels_of(images), kMostBlocks), block_of(images.channels), 0, stream>>>(
        images, moves, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void active_shift(const ActiveShiftArguments& a, const void* x, void* y, cudaStream_t stream) {
  of_type(a.images.wide, [&](auto zero) {
    using T = decltype(zero);
    const int64_t results = a.images.count * a.out_height * a.out_width;
    active_shift_kernel<T>
        <<<grid_of(a.images.channels, results, kMostBlocks), block_of(a.images.channels), 0, stream>>>(
            a, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void active_shift_input_grad(const ActiveShiftArguments& a, const void* dy, void* dx, cudaStream_t stream) {
  of_type(a.images.wide, [&](auto zero) {
    using T = decltype(zero);
    const dim3 grid = grid_of(a.images.channels, pixels_of(a.images), kMostBlocks);
    active_shift_input_grad_kernel<T>
        <<<grid, block_of(a.images.channels), 0, stream>>>(a, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

int64_t active_shift_parts(const ActiveShiftArguments& arguments) {
  return weight_grad_grid(arguments).x;
}

void active_shift_weight_grad(const ActiveShiftArguments& a, const void* dy, const void* x, float* parts,
                              cudaStream_t stream) {
  of_type(a.images.wide, [&](auto zero) {
    using T = decltype(zero);
    active_shift_weight_grad_kernel<T><<<weight_grad_grid(a), block_of(a.images.channels), 0, stream>>>(
        a, static_cast<const T*>(dy), static_cast<const T*>(x), parts);
  });
}

}  // namespace onetap::fused::cuda
