#include "onetap/kernels/int8_layout.h"

#include <cstring>

namespace onetap {

void clear_borders(const QuadLayout& layout, uint8_t zero, int64_t first, int64_t last, uint8_t* to) {
  if (layout.border_h == 0 && layout.border_w == 0) return;
  const int64_t gap = layout.border_w * kQuad, row = layout.pitch() * kQuad;
  for (int64_t quad = first; quad < last; ++quad) {
    uint8_t* plane = to + quad * layout.quad_bytes();
    std::memset(plane, zero, static_cast<size_t>(layout.pixel(0, 0)));
    uint8_t* right = plane + layout.pixel(0, layout.width);
    for (int64_t i = 1; i < layout.height; ++i, right += row) std::memset(right, zero, static_cast<size_t>(gap));
    std::memset(right, zero, static_cast<size_t>(plane + layout.quad_bytes() - right));
  }
}

}  // namespace onetap
