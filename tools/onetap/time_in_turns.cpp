#include "tools/onetap/time_in_turns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace onetap::tool {

Quantiles quantiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

std::vector<std::vector<double>> time_in_turns(const std::vector<Benchmark*>& benchmarks, const TurnOptions& options) {
  std::vector<int64_t> times;
  for (Benchmark* benchmark : benchmarks) {
    std::vector<double> warm;
    benchmark->run(2, warm);
    benchmark->run(1, warm);
    times.push_back(std::max<int64_t>(1, std::lround(options.turn_seconds / std::max(1e-7, warm.back()))));
  }
  std::vector<std::vector<double>> seconds(benchmarks.size());
  std::vector<double> spent(benchmarks.size(), 0.0);
  for (;;) {
    bool all_done = true;
    for (size_t i = 0; i < benchmarks.size(); ++i) {
      const size_t before = seconds[i].size();
      benchmarks[i]->run(times[i], seconds[i]);
      spent[i] = std::accumulate(seconds[i].begin() + static_cast<std::ptrdiff_t>(before), seconds[i].end(), spent[i]);
      all_done = all_done && spent[i] >= options.seconds;
    }
    if (options.progress) {
      options.progress(std::min(1.0, *std::min_element(spent.begin(), spent.end()) / options.seconds));
    }
    if (all_done) return seconds;
  }
}

}  // namespace onetap::tool
