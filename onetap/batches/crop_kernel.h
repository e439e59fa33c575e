// The CUDA kernel of crop_packed(), by plain pointers: what nvcc compiles knows no LibTorch.
#pragma once

#include "onetap/batches/crop_entry.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace onetap::cuda {

// The views of a packed batch: `count` squares of `size`, by the triangle filter of data/triangle.h or pixel for pixel.
// The output has rows of `channels` values, one row per pixel; `wide` says 32-bit floats, else bfloat16.
struct CropArguments {
  const uint8_t* bytes = nullptr;
  const CropEntry* entries = nullptr;
  int64_t count = 0, size = 0, channels = 0;
  bool wide = false;
  float multiply[3] = {}, add[3] = {};
  void* out = nullptr;
};
void crop(const CropArguments& arguments, cudaStream_t stream);

}  // namespace onetap::cuda
