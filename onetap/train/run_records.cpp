#include "onetap/train/run_records.h"

#include "onetap/base/fail.h"
#include "onetap/data/folder.h"
#include "onetap/train/checkpoint.h"

#include <set>

namespace onetap {

RunRecords::RunRecords(TrainingRun& run) : run_(run) {
  if (run_.state.step > 0) saved_ = place();  // on all ranks, for they save together
  if (run_.files != nullptr) journal_.emplace(*run_.files, run_.state, run_.events.on_notice, &run_.recipe);
}

void RunRecords::log(const EpochReport& report, bool tested) {
  if (!journal_) return;
  RunJournal::Epoch epoch;
  epoch.train = report.train;
  if (tested) {
    if (run_.held_test != nullptr) {
      epoch.validation = report.test;
      epoch.test = report.held_test;
    } else {
      epoch.test = report.test;
    }
    epoch.attention = attention_line();
  }
  journal_->write(epoch);
}

std::optional<AttentionLine> RunRecords::attention_line() {
  if (run_.module->trained_layers().empty()) return std::nullopt;
  const WeightAverage::Scope averaged(run_.average);
  AttentionLine line = run_.taps.take(run_.module);
  if (line.layers.empty()) return std::nullopt;
  line.step = run_.state.step;
  line.epoch = run_.epochs_done();
  line.temperature = run_.schedule.temperature(run_.state.step);
  return line;
}

void RunRecords::save() {
  run_.check_values();
  saved_ = place();
  if (!journal_) return;
  journal_->sync(run_.state);  // before the checkpoint that counts on it
  run_.state.wall_s = run_.pace.wall_s();
  run_.state.temperature = run_.schedule.temperature(run_.state.step);
  try {
    const CheckpointFolder folder(run_.files->checkpoints());
    run_.last_checkpoint =
        folder.write(run_.state, run_.module, *run_.optimizer, run_.taps, run_.average, run_.recipe.keep_checkpoints);
  } catch (const Error& problem) {
    throw with_checkpoint(problem);
  }
}

std::string RunRecords::last_checkpoint() const {
  if (run_.files == nullptr) return "rank 0 has the last good checkpoint";
  return run_.last_checkpoint.empty() ? "there is no checkpoint yet"
                                      : "the last good checkpoint is " + run_.last_checkpoint.string();
}

Error RunRecords::with_checkpoint(const Error& problem, const char* advice) const {
  return Error(problem.kind(), fmt::format("{}; {}{}", problem.what(), last_checkpoint(), advice));
}

void RunRecords::report_unreadable() {
  std::set<std::string> names;  // parts of one folder name the same files
  for (const Dataset* data : {run_.source.train.get(), run_.source.test.get(), run_.held_test.get()}) {
    if (data == nullptr) continue;
    for (const std::string& name : data->unreadable()) names.insert(name);
  }
  const size_t count = names.size();
  if (count <= unreadable_) return;
  unreadable_ = count;
  run_.notice(fmt::format("{} ('onetap data check' names {}, --strict refuses)", unreadable_text(count),
                          count == 1 ? "it" : "them"));
}

}  // namespace onetap
