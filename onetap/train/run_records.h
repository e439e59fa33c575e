// What a training writes down: its journal, epoch by epoch, and its checkpoints. Rank 0 writes; the others keep step.
#pragma once

#include "onetap/base/error.h"
#include "onetap/journal/run_journal.h"
#include "onetap/train/training_run.h"

#include <optional>
#include <string>
#include <utility>

namespace onetap {

class RunRecords {
 public:
  // Goes on behind what the run has on record. `run` must outlive it.
  explicit RunRecords(TrainingRun& run);

  // Of an epoch, which was tested or not.
  void log(const EpochReport& report, bool tested);

  // A checkpoint of where the run stands. All ranks save together: first they check that its values are finite.
  void save();
  // Checkpoints of one place in the run are the same.
  bool is_saved() const { return saved_ == place(); }

  // For the end of an error's message.
  std::string last_checkpoint() const;
  // The error, with that at its end.
  Error with_checkpoint(const Error& problem, const char* advice = "") const;

  // Tells how many images could not be decoded, once for every new one.
  void report_unreadable();

 private:
  std::pair<int64_t, bool> place() const { return {run_.state.step, run_.state.epoch_logged}; }
  std::optional<AttentionLine> attention_line();

  TrainingRun& run_;
  std::optional<RunJournal> journal_;          // rank 0's
  std::pair<int64_t, bool> saved_{-1, false};  // place() of the newest checkpoint, on every rank
  size_t unreadable_ = 0;                      // images that were reported
};

}  // namespace onetap
