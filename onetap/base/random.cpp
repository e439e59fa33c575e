#include "onetap/base/random.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace onetap {
namespace {

template <typename T>
std::vector<T> shuffled(T n, Random& random) {
  std::vector<T> order(n);
  std::iota(order.begin(), order.end(), T{0});
  for (uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace

std::vector<uint16_t> random_choice(uint16_t n, size_t count, Random& random) {
  std::vector<uint16_t> chosen = shuffled(n, random);
  chosen.resize(count);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<uint32_t> permutation(uint32_t n, Random random) {
  return shuffled(n, random);
}

}  // namespace onetap
