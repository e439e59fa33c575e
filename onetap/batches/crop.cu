#include "onetap/batches/activation.cuh"
#include "onetap/batches/crop_kernel.h"
#include "onetap/data/transform.h"
#include "onetap/data/triangle.h"

namespace onetap::cuda {
namespace {

// A triangle in 32 bits: what is near the image's far end in it would be lost, so positions stay whole numbers.
struct Taps {
  int first, count;
  float offset, inverse_support, inverse_sum;

  __device__ static Taps make(int extent, double start, double length, int outputs, int i) {
    const Triangle t = Triangle::make(extent, start, length, outputs, i);
    return {static_cast<int>(t.first), static_cast<int>(t.count), static_cast<float>(t.offset),
            static_cast<float>(1 / t.support), static_cast<float>(1 / t.sum)};
  }
  __device__ float weight(int k) const {
    return fmaxf(0.0f, 1.0f - fabsf(offset + static_cast<float>(k)) * inverse_support) * inverse_sum;
  }
};

constexpr int kCropThreads = 256, kCropRows = 8, kCropColumns = 256;

// A block for some rows and columns of an image's view, whose taps are made once.
template <typename T>
__global__ void crop_kernel(CropArguments a) {
  __shared__ Taps across_taps[kCropColumns], down_taps[kCropRows];
  const int size = static_cast<int>(a.size);
  const int first_row = blockIdx.y * kCropRows, first_column = blockIdx.z * kCropColumns;
  const int rows = min(kCropRows, size - first_row), columns = min(kCropColumns, size - first_column);
  const CropEntry e = a.entries[blockIdx.x];
  const auto unflipped = [&](int column) { return e.flip ? size - 1 - column : column; };
  if (e.resize) {
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
      across_taps[i] = Taps::make(e.width, e.left, e.box_width, size, unflipped(first_column + i));
    }
    if (threadIdx.x < rows) {
      down_taps[threadIdx.x] = Taps::make(e.height, e.top, e.box_height, size, first_row + threadIdx.x);
    }
  }
  __syncthreads();
  const Cutout square{e.cut_top, e.cut_left, e.cut_side};
  const Jitter jitter{e.contrast, e.saturation, e.brightness};
  const uint8_t* planes = a.bytes + e.offset;
  const int64_t plane = static_cast<int64_t>(e.height) * e.width;
  for (int p = threadIdx.x; p < rows * columns; p += blockDim.x) {
    const int row = first_row + p / columns, column = first_column + p % columns;
    float values[3] = {0, 0, 0};
    if (e.resize) {
      const Taps across = across_taps[p % columns], down = down_taps[p / columns];
      for (int y = 0; y < down.count; ++y) {
        const uint8_t* from = planes + static_cast<int64_t>(down.first + y) * e.width + across.first;
        float sums[3] = {0, 0, 0};
        for (int x = 0; x < across.count; ++x) {
          const float weight = across.weight(x);
          for (int c = 0; c < 3; ++c) sums[c] += weight * static_cast<float>(from[c * plane + x]);
        }
        const float weight = down.weight(y);
        for (int c = 0; c < 3; ++c) values[c] += weight * sums[c];
      }
    } else {
      const int y = static_cast<int>(e.top) + row, x = static_cast<int>(e.left) + unflipped(column);
      if (y >= 0 && y < e.height && x >= 0 && x < e.width) {
        for (int c = 0; c < 3; ++c) {
          values[c] = static_cast<float>(planes[c * plane + static_cast<int64_t>(y) * e.width + x]);
        }
      }
    }
    for (int c = 0; c < 3; ++c) values[c] = __fadd_rn(__fmul_rn(values[c], a.multiply[c]), a.add[c]);
    if (jitter.changes()) jitter.apply(values[0], values[1], values[2]);
    const bool cut = square.covers(row, column);
    T* pixel = static_cast<T*>(a.out) + ((static_cast<int64_t>(blockIdx.x) * size + row) * size + column) * a.channels;
    for (int c = 0; c < a.channels; ++c) {
      put(c < 3 && !cut ? values[c] : 0.0f, pixel + c);
    }
  }
}

}  // namespace

void crop(const CropArguments& arguments, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(arguments.count),
                    static_cast<unsigned>((arguments.size + kCropRows - 1) / kCropRows),
                    static_cast<unsigned>((arguments.size + kCropColumns - 1) / kCropColumns));
  of_type(arguments.wide,
          [&](auto zero) { crop_kernel<decltype(zero)><<<blocks, kCropThreads, 0, stream>>>(arguments); });
}

}  // namespace onetap::cuda
