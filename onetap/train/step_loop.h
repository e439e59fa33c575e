// The steps of an epoch: by LibTorch's autograd, op by op, or by the engine.
#pragma once

#include "onetap/batches/batch_stream.h"
#include "onetap/data/mix.h"
#include "onetap/nn/objective.h"
#include "onetap/train/run_records.h"
#include "onetap/train/training_run.h"

namespace onetap {

class StepLoop {
 public:
  // Both must outlive it. `records` keeps checkpoints within an epoch, where the recipe wants them.
  StepLoop(TrainingRun& run, RunRecords& records);

  // Steps to the end of the epoch; false if asked to stop before. Throws NotFinite, on all ranks at once, where the
  // loss or a parameter is no longer finite; the run's step then counts the one that was looked at.
  bool run_epoch();

 private:
  bool run_plain(const StreamOptions& options);
  bool run_engine(int64_t first);
  void step(const Batch& batch);
  void add_gradients(const torch::Tensor& images, nn::Targets targets, int64_t step_images, StepTotals& totals);
  torch::Tensor forward(nn::GraphModule& network, const torch::Tensor& images) const;
  int64_t images_of_step() const;
  bool wants_checkpoint() const;
  void check_stopped_alone() const;
  void report_step(double lr) const;

  TrainingRun& run_;
  RunRecords& records_;
  const MixOptions mix_;
  nn::NamedTensors parameters_;  // the module's
  bool stopping_ = false;        // all ranks know that one was told to stop
};

}  // namespace onetap
