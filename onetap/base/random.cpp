#include "onetap/base/random.h"

#include <numeric>
#include <utility>

namespace onetap {

std::vector<uint32_t> permutation(uint32_t n, Random random) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace onetap
