// What the reference's floats and bytes have in common: which pixels and weights meet.
#pragma once

#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/kernel_set.h"

#include <algorithm>
#include <cstdint>

namespace onetap::reference {

// The outputs i in [first, last) whose input i * stride + offset lies inside 0..extent-1.
struct Inside {
  int64_t first, last;
};

inline Inside inside(int64_t outputs, int64_t stride, int64_t offset, int64_t extent) {
  const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t last = extent - 1 - offset < 0 ? 0 : (extent - 1 - offset) / stride + 1;
  return {first, std::max(first, std::min(outputs, last))};
}

// y += weight * x, shifted to one position of the kernel; in the type of y.
template <typename X, typename Y>
void add_tap(const ConvShape& shape, int64_t position, Y weight, const X* x, Y* y) {
  const int64_t down = position / shape.kernel_w * shape.dilation_h - shape.padding_h;
  const int64_t right = position % shape.kernel_w * shape.dilation_w - shape.padding_w;
  const Inside rows = inside(shape.out_h(), shape.stride_h, down, shape.in_h);
  const Inside columns = inside(shape.out_w(), shape.stride_w, right, shape.in_w);
  for (int64_t row = rows.first; row < rows.last; ++row) {
    const X* from = x + (row * shape.stride_h + down) * shape.in_w + right;
    Y* to = y + row * shape.out_w();
    if (shape.stride_w == 1) {
      for (int64_t i = columns.first; i < columns.last; ++i) to[i] += weight * static_cast<Y>(from[i]);
    } else {
      for (int64_t i = columns.first; i < columns.last; ++i) to[i] += weight * static_cast<Y>(from[i * shape.stride_w]);
    }
  }
}

// Adds to y, the plane of output d, what all of its weights give. Dense and tap convolutions differ in which positions
// they visit; `positions` is null for a dense one.
template <typename X, typename W, typename Y>
void add_taps(const ConvShape& shape, const W* weight, const uint16_t* positions, int64_t d, const X* x, Y* y) {
  const TapLayout layout = shape.layout();
  const int64_t in = shape.in_per_group(), taps = shape.taps_per_slice();
  for (int64_t c = 0; c < in; ++c) {
    const X* from = x + (d / shape.out_per_group() * in + c) * shape.in_h * shape.in_w;
    for (int64_t i = 0; i < taps; ++i) {
      const int64_t position = shape.taps > 0 ? positions[layout.first_code(d, c) + i] : i;
      if (position == layout.none()) continue;
      add_tap<X, Y>(shape, position, static_cast<Y>(weight[(d * in + c) * taps + i]), from, y);
    }
  }
}

// Calls visit(pixel) for those pixels of a plane that lie in the window of an output.
template <typename X, typename Visit>
void visit_window(const PoolShape& shape, int64_t row, int64_t column, const X* plane, Visit visit) {
  for (int64_t k = 0; k < shape.kernel_h * shape.kernel_w; ++k) {
    const int64_t iy = row * shape.stride_h - shape.padding_h + k / shape.kernel_w;
    const int64_t ix = column * shape.stride_w - shape.padding_w + k % shape.kernel_w;
    if (iy < 0 || iy >= shape.in_h || ix < 0 || ix >= shape.in_w) continue;
    visit(plane[iy * shape.in_w + ix]);
  }
}

}  // namespace onetap::reference
