// The tests of a training: before its first step, after its epochs, at its end; and what follows from them.
#pragma once

#include "onetap/train/evaluate.h"
#include "onetap/train/training_run.h"

#include <optional>

namespace onetap {

class EpochTests {
 public:
  // `run` must outlive it.
  explicit EpochTests(TrainingRun& run) : run_(run) {}

  // Says what weights from elsewhere are worth before they change.
  void test_start();

  // On the set that is watched, and whether that is the best so far; false if asked to stop.
  bool test_epoch(MetricLine& line);
  // On the test set of a run that watches another one; false if asked to stop.
  bool test_held(std::optional<MetricLine>& line);

  // Whether the last epochs were no better.
  bool out_of_patience() const;

  // Batch norm's statistics taken anew, where the recipe says so; false if asked to stop.
  bool recalibrate_norms();

 private:
  std::optional<EvalResult> test();
  EvalOptions eval_options() const;
  MetricLine test_line(const char* split, const EvalResult& result, Clock::time_point started) const;

  TrainingRun& run_;
};

}  // namespace onetap
