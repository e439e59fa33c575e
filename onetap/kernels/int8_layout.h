// How the values of an int8 network lie for the fast kernels: quads of channels, so that four inputs of a pixel are one
// operand of a dot product, between zeros, so that no tap needs to know where a plane ends.
#pragma once

#include "onetap/base/tensor.h"

#include <cstdint>

namespace onetap {

// The byte that stands for 0. Dot products take unsigned bytes, so signed values lie in memory with 128 added.
constexpr uint8_t zero_byte(DType dtype) {
  return dtype == DType::kI8 ? 128 : 0;
}

constexpr int64_t kQuad = 4;  // channels of a quad, and bytes of its pixels

// [quads][rows][columns][4]. Between two rows lie border_w pixels of zeros, the right border of one and the left of the
// next; above the first and below the last border_h rows of them.
struct QuadLayout {
  int64_t channels = 1, height = 1, width = 1;
  int64_t border_h = 0, border_w = 0;

  int64_t quads() const { return (channels + kQuad - 1) / kQuad; }
  int64_t pitch() const { return width + border_w; }  // pixels from one row to the next
  int64_t quad_bytes() const { return ((height + 2 * border_h) * pitch() + border_w) * kQuad; }
  // From the begin of a quad to its pixel (row, column), which may be of the border.
  int64_t pixel(int64_t row, int64_t column) const { return ((border_h + row) * pitch() + border_w + column) * kQuad; }
  // With what may be read, though not used, behind the last pixel.
  int64_t bytes() const { return quads() * quad_bytes() + kReadBehind; }
  bool is_like(const QuadLayout& other) const {
    return height == other.height && width == other.width && border_h == other.border_h && border_w == other.border_w;
  }

  static constexpr int64_t kReadBehind = 128;  // two of the widest vectors, of which every second pixel is used
};

// Sets the borders of quads [first, last) to zeros.
void clear_borders(const QuadLayout& layout, uint8_t zero, int64_t first, int64_t last, uint8_t* to);

}  // namespace onetap
