// Walking over the pixels of images, a thread for each channel: for kernels in which every channel goes its own way.
#pragma once

#include "onetap/fused/kernels.h"
#include "onetap/fused/vector.cuh"

#include <algorithm>

namespace onetap::fused::cuda {

constexpr int kThreads = 256;
constexpr int kMostBlocks = 132 * 16;  // of the chip this was tuned on
constexpr int kSumBlocks = 132 * 4;    // sums have an end that is paid once a block

// A thread has one channel, whose shift it keeps, and takes pixels blockDim.y * gridDim.x apart. Neighbouring threads
// have neighbouring channels; what they read of other pixels is soon read again by others of the block.
inline dim3 block_of(int64_t channels) {
  const auto lanes = static_cast<unsigned>(std::min<int64_t>(kThreads, (channels + 31) / 32 * 32));
  return dim3(lanes, kThreads / lanes);
}

inline dim3 grid_of(int64_t channels, int64_t pixels, int64_t most) {
  const dim3 block = block_of(channels);
  const int64_t chunks = (channels + block.x - 1) / block.x, needed = (pixels + block.y - 1) / block.y;
  return dim3(static_cast<unsigned>(std::max<int64_t>(1, std::min(needed, most / chunks))),
              static_cast<unsigned>(chunks));
}

struct Pixel {
  int64_t image;
  int h, w;

  // Pixels are counted in 32 bits: dividing 64-bit numbers would take longer than all the rest.
  __device__ Pixel(int64_t index, int64_t height, int64_t width) {
    const auto at = static_cast<uint32_t>(index), columns = static_cast<uint32_t>(width);
    const uint32_t row = at / columns;
    w = static_cast<int>(at - row * columns);
    image = row / static_cast<uint32_t>(height);
    h = static_cast<int>(row - static_cast<uint32_t>(image) * static_cast<uint32_t>(height));
  }
};

inline __device__ int own_channel() {
  return static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
}
inline __device__ int64_t first_pixel() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}
inline __device__ int64_t pixel_step() {
  return static_cast<int64_t>(gridDim.x) * blockDim.y;
}

inline __device__ bool is_inside(int h, int w, const Images& images) {
  return h >= 0 && h < images.height && w >= 0 && w < images.width;
}

inline __device__ int64_t place(const Images& images, int64_t image, int h, int w, int channel) {
  return ((image * images.height + h) * images.width + w) * images.channels + channel;
}

inline int64_t pixels_of(const Images& images) {
  return images.count * images.height * images.width;
}

}  // namespace onetap::fused::cuda
