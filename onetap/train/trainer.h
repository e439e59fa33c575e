// The training loop.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/graph/graph.h"
#include "onetap/journal/metrics.h"
#include "onetap/ranks/rank_group.h"
#include "onetap/recipe/recipe.h"
#include "onetap/train/run_directory.h"

#include <atomic>
#include <functional>
#include <optional>
#include <string>

namespace onetap {

// Where a run stands, after every step.
struct StepReport {
  int64_t step = 0, total_steps = 0;
  int64_t epoch = 0, epochs = 0;  // epoch counted from 1
  int64_t step_in_epoch = 0, steps_per_epoch = 0;
  double loss = 0;      // mean of the epoch so far
  double accuracy = 0;  // of the epoch so far, soft
  double lr = 0;
  double temperature = 0;
  double img_per_s = 0;
  double data_wait = 0;  // share of the epoch so far that went by without data to work on
  double eta_s = 0;
};

// After every tested epoch.
struct EpochReport {
  int64_t epoch = 0, epochs = 0;
  MetricLine train;
  MetricLine test;                      // of the test set, or of the validation set in its place
  std::optional<MetricLine> held_test;  // of the test set, after the last epoch of a run with a validation set
};

// What the loop tells its caller; the loop itself prints nothing.
struct TrainEvents {
  std::function<void(const StepReport&)> on_step;
  std::function<void(const EpochReport&)> on_epoch;
  std::function<void(int64_t done, int64_t total)> on_test_images;
  std::function<void(const std::string&)> on_notice;
};

enum class TrainOutcome { kFinished, kInterrupted };

// Trains the run from where its newest complete checkpoint stands (or from the start) to its end.
// `recipe` is the run's own, resolved. When `stop` becomes true, the present step is finished, a checkpoint is
// written and kInterrupted returned; before statistics and ranges that the first step needs are there, no checkpoint is
// written, and the run starts over. kFailure if the loss, a weight or the test loss is no longer finite, or a file
// cannot be written; the message names the step and the last good checkpoint. What is not finite is never kept: neither
// as a checkpoint nor in the journal.
//
// `ranks` are the processes that share the work, of which this is rank 0. They compute what one would, to rounding
// (with batch norm by each one's images unless the recipe says sync_norm), and stop together where one is told to.
TrainOutcome train(const RunDirectory& run, const Recipe& recipe, const DataSource& source, const TrainEvents& events,
                   const std::atomic<bool>& stop, RankGroup* ranks = nullptr);

// The part of another rank, with rank 0's recipe and network: it touches no files and takes everything else from it.
TrainOutcome train_along(RankGroup& ranks, const Recipe& recipe, const Graph& graph, const DataSource& source,
                         const std::atomic<bool>& stop);

}  // namespace onetap
