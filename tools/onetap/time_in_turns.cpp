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

namespace {

// Repetitions that fill a turn. What one took is known better with every turn: one that was disturbed (a cold cache,
// more threads than cores) would otherwise make turns too short for as long as everyone waits for the last, or too
// long.
int64_t fitting_times(double turn_seconds, double one) {
  return std::max<int64_t>(1, std::lround(turn_seconds / std::max(1e-7, one)));
}

}  // namespace

std::vector<std::vector<double>> time_in_turns(const std::vector<Benchmark*>& benchmarks, const TurnOptions& options) {
  constexpr int64_t kMostGrowth = 10;  // few repetitions say little of many
  std::vector<int64_t> times;
  for (Benchmark* benchmark : benchmarks) {
    std::vector<double> warm;
    benchmark->run(2, warm);
    benchmark->run(1, warm);
    times.push_back(fitting_times(options.turn_seconds, warm.back()));
  }
  std::vector<std::vector<double>> seconds(benchmarks.size());
  std::vector<double> spent(benchmarks.size(), 0.0);
  for (;;) {
    bool all_done = true;
    for (size_t i = 0; i < benchmarks.size(); ++i) {
      const size_t before = seconds[i].size();
      benchmarks[i]->run(times[i], seconds[i]);
      const double spent_before = spent[i];
      spent[i] = std::accumulate(seconds[i].begin() + static_cast<std::ptrdiff_t>(before), seconds[i].end(), spent[i]);
      const double one = (spent[i] - spent_before) / static_cast<double>(times[i]);
      times[i] = std::min(fitting_times(options.turn_seconds, one), kMostGrowth * times[i]);
      all_done = all_done && spent[i] >= options.seconds;
    }
    if (options.progress) {
      options.progress(std::min(1.0, *std::min_element(spent.begin(), spent.end()) / options.seconds));
    }
    if (all_done) return seconds;
  }
}

}  // namespace onetap::tool
