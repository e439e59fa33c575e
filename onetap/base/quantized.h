// A float as a byte of an int8 network.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace onetap {

// x / scale, rounded to the nearest, halves to even, clamped to [least, most]; 0 for a NaN.
inline int32_t quantized(float x, float scale, int32_t least, int32_t most) {
  if (std::isnan(x)) return 0;
  return static_cast<int32_t>(
      std::nearbyint(std::clamp(x / scale, static_cast<float>(least), static_cast<float>(most))));
}

}  // namespace onetap
