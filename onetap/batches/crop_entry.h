// An image of a packed batch, as kernels read it.
#pragma once

#include <cstdint>

namespace onetap {

struct CropEntry {
  int64_t offset = 0;  // of its three planes in the batch's bytes
  double top = 0, left = 0, box_height = 0, box_width = 0;
  int32_t height = 0, width = 0;  // of its planes
  int32_t flip = 0, resize = 0;
  int32_t cut_top = 0, cut_left = 0, cut_side = 0;     // a square of the view that is left out
  float contrast = 1, saturation = 1, brightness = 0;  // Jitter
};
static_assert(sizeof(CropEntry) == 80, "it travels as bytes");

}  // namespace onetap
