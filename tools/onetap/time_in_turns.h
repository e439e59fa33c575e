// Times several things against each other on a machine that is never quiet: in turns, within one run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace onetap::tool {

class Benchmark {
 public:
  virtual ~Benchmark() = default;
  // Does its work `times` times; appends the seconds that each took.
  virtual void run(int64_t times, std::vector<double>& seconds) = 0;
};

// Of sorted copies; 0 where there is nothing.
struct Quantiles {
  double p10 = 0, median = 0, p90 = 0;
};
Quantiles quantiles(std::vector<double> values);

struct TurnOptions {
  double seconds = 1.0;        // of measuring, for each benchmark
  double turn_seconds = 0.02;  // of one turn: long enough to warm the caches, short enough to share the weather
  std::function<void(double share_done)> progress;
};

// What every benchmark's repetitions took, in the order given. A first turn warms up and is not counted.
std::vector<std::vector<double>> time_in_turns(const std::vector<Benchmark*>& benchmarks, const TurnOptions& options);

}  // namespace onetap::tool
