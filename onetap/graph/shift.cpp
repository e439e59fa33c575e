#include "onetap/graph/shift.h"

#include "onetap/base/fail.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace onetap {

std::vector<uint16_t> shift_codes(const Node& node, int64_t channels) {
  const int64_t positions = node.kernel.area();
  const auto centre = static_cast<uint16_t>(node.kernel.h / 2 * node.kernel.w + node.kernel.w / 2);
  std::vector<uint16_t> codes(static_cast<size_t>(channels), centre);
  if (node.counts.empty()) {
    const int64_t whole = channels / positions * positions;
    for (int64_t c = 0; c < whole; ++c) codes[static_cast<size_t>(c)] = static_cast<uint16_t>(c % positions);
    return codes;
  }
  auto next = codes.begin();
  for (size_t position = 0; position < node.counts.size(); ++position) {
    next = std::fill_n(next, node.counts[position], static_cast<uint16_t>(position));
  }
  return codes;
}

std::vector<int64_t> divide_channels(int64_t channels, const std::vector<double>& proportions) {
  double sum = 0;
  for (const double share : proportions) {
    if (!(share >= 0) || !std::isfinite(share)) fail_usage("[graph] expected proportions of at least 0, got {}", share);
    sum += share;
  }
  if (!(sum > 0)) fail_usage("[graph] expected proportions with a sum above 0, got {}", sum);
  std::vector<int64_t> counts;
  std::vector<double> rest;
  for (const double share : proportions) {
    const double exact = share / sum * static_cast<double>(channels);
    counts.push_back(static_cast<int64_t>(exact));
    rest.push_back(exact - std::floor(exact));
  }
  std::vector<size_t> order(proportions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  const int64_t missing = channels - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (int64_t i = 0; i < missing; ++i) ++counts[order[static_cast<size_t>(i) % order.size()]];
  return counts;
}

}  // namespace onetap
