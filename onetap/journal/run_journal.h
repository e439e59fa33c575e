// What a run writes down epoch by epoch: its metrics, its attention, and both for TensorBoard.
#pragma once

#include "onetap/journal/attention_log.h"
#include "onetap/journal/event_file.h"
#include "onetap/journal/kept_lines.h"
#include "onetap/journal/line_file.h"
#include "onetap/journal/metrics.h"
#include "onetap/journal/run_files.h"
#include "onetap/journal/run_state.h"

#include <optional>

namespace onetap {

class RunJournal {
 public:
  // Goes on after what `state` had on record; `notice` hears what of that was damaged (see kept_lines.h).
  // `recipe`, if given, becomes TensorBoard's hyper-parameters, and must outlive this.
  RunJournal(const RunFiles& files, const RunState& state, const JournalNotice& notice = {},
             const Recipe* recipe = nullptr);

  struct Epoch {
    MetricLine train;
    std::optional<MetricLine> validation;    // of a tested epoch, of a run with images held out
    std::optional<MetricLine> test;          // of a tested epoch; of such a run: of the last
    std::optional<AttentionLine> attention;  // of one with Shift Attention Layers
  };
  void write(const Epoch& epoch);

  // All of it is on the disk after this, and `state` knows how much it is.
  void sync(RunState& state);

 private:
  LineFile metrics_, attention_;
  std::optional<EventFile> tensorboard_;  // with the first epoch: a finished run that is resumed leaves no new file
  const Recipe* recipe_;
  std::filesystem::path root_;
  int64_t first_step_;
};

}  // namespace onetap
