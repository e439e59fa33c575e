// A sum in integers, scaled down to a byte's range: the one way in which int8 networks round.
#pragma once

#include <cstdint>

namespace onetap {

// y = (x * multiplier + 2^(shift - 1)) >> shift, in 64 bits with an arithmetic shift: x times a positive number below
// one half, rounded to the nearest, halves up. The lower half of the product only rounds, so y is also
// (upper 32 bits of (x * multiplier + 2^(shift - 1))) >> (shift - 32).
struct Requantize {
  int32_t multiplier = 0;  // 0 or 2^30 to 2^31 - 1
  int32_t shift = 32;      // 32 to 62

  bool operator==(const Requantize& other) const { return multiplier == other.multiplier && shift == other.shift; }
};

inline int32_t requantized(int32_t x, const Requantize& by) {
  return static_cast<int32_t>((static_cast<int64_t>(x) * by.multiplier + (int64_t{1} << (by.shift - 1))) >> by.shift);
}

}  // namespace onetap
