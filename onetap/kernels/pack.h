// Copies inputs into the layout that a PackLayout describes.
#pragma once

#include "onetap/kernels/kernel_set.h"

namespace onetap {

struct PackTask {
  const float* x = nullptr;  // the tensor
  int64_t x_plane = 0;
  int64_t first_channel = 0, channels = 0;
  int64_t first = 0, floats = 0;  // the tile: its first output pixel, and how many, whole vectors
  float* parts = nullptr;         // layout.parts_floats(channels) of scratch
  float* pack = nullptr;          // channels * layout.channel_floats()
};
void pack_tile(const KernelSet& kernels, const PackLayout& layout, const PackTask& task);

}  // namespace onetap
