#include "onetap/plan/arena.h"

#include "onetap/base/align.h"

#include <algorithm>
#include <numeric>

namespace onetap {

// Largest first, each as low as it fits.
int64_t place_values(std::vector<Lifetime>& values, int64_t alignment) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a].bytes > values[b].bytes; });
  std::vector<const Lifetime*> placed;  // by offset
  int64_t total = 0;
  for (const size_t index : order) {
    Lifetime& value = values[index];
    const int64_t size = round_up(value.bytes, alignment);
    int64_t offset = 0;
    for (const Lifetime* other : placed) {
      if (other->last < value.first || value.last < other->first) continue;
      if (other->offset >= offset + size) break;
      offset = std::max(offset, other->offset + round_up(other->bytes, alignment));
    }
    value.offset = offset;
    total = std::max(total, offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &value,
                                   [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
                  &value);
  }
  return total;
}

}  // namespace onetap
