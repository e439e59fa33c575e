// Places values that live at different times in the same memory.
#pragma once

#include <cstdint>
#include <vector>

namespace onetap {

struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;  // steps; both are included
  int64_t offset = 0;       // the result: bytes from the arena's begin, a multiple of the alignment
};

// Sets every offset so that values that live at the same time do not overlap; returns the bytes needed in all.
int64_t place_values(std::vector<Lifetime>& values, int64_t alignment);

}  // namespace onetap
