// Things in a row, divided among parts as evenly as possible.
#pragma once

#include <cstdint>

namespace onetap {

// Which of several parts.
struct Part {
  int64_t index = 0;
  int64_t of = 1;
};

// Those of a part.
struct Portion {
  int64_t first = 0, count = 0;
};
constexpr Portion portion_of(int64_t things, int64_t part, int64_t parts) {
  const int64_t first = things * part / parts;
  return {first, things * (part + 1) / parts - first};
}

}  // namespace onetap
