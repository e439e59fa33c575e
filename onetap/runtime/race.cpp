#include "onetap/runtime/race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace onetap {

Quantiles quantiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

std::vector<std::vector<double>> race(const std::vector<Contestant*>& contestants, const RaceOptions& options) {
  std::vector<int64_t> times;
  for (Contestant* contestant : contestants) {
    std::vector<double> warm;
    contestant->run(2, warm);
    contestant->run(1, warm);
    times.push_back(std::max<int64_t>(1, std::lround(options.turn_seconds / std::max(1e-7, warm.back()))));
  }
  std::vector<std::vector<double>> seconds(contestants.size());
  std::vector<double> spent(contestants.size(), 0.0);
  for (;;) {
    bool all_done = true;
    for (size_t i = 0; i < contestants.size(); ++i) {
      const size_t before = seconds[i].size();
      contestants[i]->run(times[i], seconds[i]);
      spent[i] = std::accumulate(seconds[i].begin() + static_cast<std::ptrdiff_t>(before), seconds[i].end(), spent[i]);
      all_done = all_done && spent[i] >= options.seconds;
    }
    if (options.progress) {
      options.progress(std::min(1.0, *std::min_element(spent.begin(), spent.end()) / options.seconds));
    }
    if (all_done) return seconds;
  }
}

}  // namespace onetap
