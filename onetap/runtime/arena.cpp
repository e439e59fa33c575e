#include "onetap/runtime/arena.h"

#include "onetap/kernels/aligned.h"

#include <algorithm>
#include <numeric>

namespace onetap {

// Largest first, each as low as it fits.
int64_t place_values(std::vector<Lifetime>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a].floats > values[b].floats; });
  std::vector<const Lifetime*> placed;  // by offset
  int64_t total = 0;
  for (const size_t index : order) {
    Lifetime& value = values[index];
    const int64_t size = round_up(value.floats, kLineFloats);
    int64_t offset = 0;
    for (const Lifetime* other : placed) {
      if (other->last < value.first || value.last < other->first) continue;
      if (other->offset >= offset + size) break;
      offset = std::max(offset, other->offset + round_up(other->floats, kLineFloats));
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
