// Sizes and places that are multiples of something.
#pragma once

#include <cstdint>

namespace onetap {

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace onetap
