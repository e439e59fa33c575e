// Work cut into nearly equal pieces, rather than wide ones and a narrow rest.
#pragma once

#include <cstdint>

namespace onetap {

struct Range {
  int64_t first, last;

  int64_t count() const { return last - first; }
};

inline Range share_of(int64_t count, int64_t part, int64_t parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

// Into how many pieces of at most `most`.
inline int64_t pieces_of(int64_t count, int64_t most) {
  return (count + most - 1) / most;
}

}  // namespace onetap
