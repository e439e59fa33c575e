// A training as it stands: what was asked for, the network and all that trains it, and how far it has come. The parts
// of the loop work on it: StepLoop (step_loop.h) trains, EpochTests (epoch_tests.h) tests, RunRecords (run_records.h)
// writes down.
#pragma once

#include "onetap/batches/batch_stream.h"
#include "onetap/fused/engine.h"
#include "onetap/journal/run_state.h"
#include "onetap/nn/graph_module.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/recipe/schedule.h"
#include "onetap/train/attention_record.h"
#include "onetap/train/optimizer.h"
#include "onetap/train/pace.h"
#include "onetap/train/quantized_training.h"
#include "onetap/train/rank_share.h"
#include "onetap/train/trainer.h"
#include "onetap/train/weight_average.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

class TrainingRun {
 public:
  // Stands where the newest good checkpoint does, or at the start; on all ranks where rank 0 does.
  // `files` of rank 0 alone; null on others. What is passed by reference must outlive it.
  TrainingRun(const RunFiles* files, const Graph& graph, const Recipe& recipe, const DataSource& source,
              const TrainEvents& events, const std::atomic<bool>& stop, RankGroup* ranks);
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  int64_t epochs_done() const { return state.step / schedule.steps_per_epoch(); }
  // All steps of an epoch are done, and its tests are not.
  bool at_epoch_end() const;
  bool finished() const;
  // Asked to stop before the network was as the first step needs it. Nothing of it may be kept: the run is to start
  // over. The same on all ranks.
  bool stopped_at_start() const { return stopped_at_start_; }

  StreamOptions stream_options(bool train) const;
  // What every line of metrics says of the last step.
  MetricLine metric_line(const char* split) const;

  // Throws NotFinite, on all ranks at once, if a value is nan or inf.
  void check_values(const nn::NamedTensors& tensors) const;
  // Likewise, of all that a checkpoint would hold: weights, statistics, momenta and averages.
  void check_values() const;

  // To call behind every step, before anything is tested or saved: at the step from which attention is hard on, the
  // positions that are kept become final, whatever momentum the optimiser had.
  void settle_if_hard();

  void notice(const std::string& text) const;

  // What was asked for.
  const RunFiles* const files;
  const Recipe& recipe;
  const DataSource source;                         // its test set is the one that is watched
  const std::shared_ptr<const Dataset> held_test;  // tested at the end alone; null: the one above
  const TrainEvents& events;
  const std::atomic<bool>& stop;
  const torch::Device device;
  const c10::DeviceGuard on_device{device};  // work without a tensor to tell goes there, too
  const Graph graph;
  const View view;
  const Schedule schedule;

  // What trains.
  nn::GraphModule module;
  std::optional<QuantizedTraining> quantized;  // none: in floats
  std::unique_ptr<Optimizer> optimizer;
  WeightAverage average;
  RankShare share;
  nn::GraphModule teacher{nullptr};       // null: none
  std::unique_ptr<fused::Engine> engine;  // null: LibTorch's autograd, op by op

  // How far it is.
  RunState state;
  std::filesystem::path last_checkpoint;  // the last good one; empty: none yet
  AttentionRecord taps;
  Pace pace;

 private:
  void start_from_init();
  void restore();
  void calibrate_ranges();
  void give_norms_statistics();
  std::optional<int64_t> evaluate_some(const std::function<void(const std::function<bool()>&)>& pass);
  void join_ranks();
  void find_teacher();
  std::function<bool()> gives_up_waiting() const;

  std::vector<std::string> plain_norms_;  // of what the run starts from
  bool stopped_at_start_ = false;
};

}  // namespace onetap
