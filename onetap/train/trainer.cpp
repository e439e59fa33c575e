#include "onetap/train/trainer.h"

#include "onetap/base/fail.h"
#include "onetap/train/epoch_tests.h"
#include "onetap/train/finite.h"
#include "onetap/train/run_records.h"
#include "onetap/train/step_loop.h"
#include "onetap/train/training_run.h"

namespace onetap {
namespace {

// Epoch after epoch: steps, tests, records.
class Trainer {
 public:
  Trainer(const RunFiles* files, const Graph& graph, const Recipe& recipe, const DataSource& source,
          const TrainEvents& events, const std::atomic<bool>& stop, RankGroup* ranks)
      : run_(files, graph, recipe, source, events, stop, ranks), records_(run_), tests_(run_), steps_(run_, records_) {}

  TrainOutcome run() try {
    if (run_.stopped_at_start()) return TrainOutcome::kInterrupted;
    if (run_.state.step == 0 && !run_.recipe.init.empty()) tests_.test_start();
    run_.pace.start_sitting(run_.state.step, run_.state.wall_s);
    while (!run_.finished()) {
      const bool epoch_done = (run_.at_epoch_end() || steps_.run_epoch()) && finish_epoch();
      const bool stopping = run_.share.any(run_.stop);
      if ((!epoch_done || stopping) && !records_.is_saved()) records_.save();
      if (stopping && !run_.finished()) return TrainOutcome::kInterrupted;
    }
    return TrainOutcome::kFinished;
  } catch (const RankError& problem) {  // other ranks know nothing of checkpoints
    throw records_.with_checkpoint(problem);
  } catch (const NotFinite& problem) {
    const int64_t step = run_.state.step;
    throw records_.with_checkpoint(Error(problem.kind(), fmt::format("{} at step {} (epoch {})", problem.what(), step,
                                                                     (step - 1) / run_.schedule.steps_per_epoch() + 1)),
                                   " (a new run with a lower --lr or a longer --warmup-epochs may not diverge)");
  }

 private:
  // Test, metrics, checkpoint; false if asked to stop during the test.
  bool finish_epoch() {
    const Recipe& recipe = run_.recipe;
    RunState& state = run_.state;
    run_.check_values();
    EpochReport report = train_report();
    const int64_t done = report.epoch;
    bool is_last = done == recipe.all_epochs() || state.ended;  // ended: and stopped in the tests behind that
    const bool test_now = done % recipe.eval_every == 0 || is_last;
    if (test_now) {
      run_.module->set_temperature(run_.schedule.temperature(state.step));
      if (is_last && !tests_.recalibrate_norms()) return false;
      if (!tests_.test_epoch(report.test)) return false;
      if (!is_last && tests_.out_of_patience()) {
        run_.notice(fmt::format("stopping after epoch {}: no better accuracy for {} epoch{}", done, recipe.patience,
                                recipe.patience == 1 ? "" : "s"));
        is_last = state.ended = true;
        if (recipe.recalibrate > 0 && !(tests_.recalibrate_norms() && tests_.test_epoch(report.test))) return false;
      }
      if (is_last && run_.held_test != nullptr && !tests_.test_held(report.held_test)) return false;
    }
    state.epoch_logged = true;
    records_.log(report, test_now);
    if (done % recipe.checkpoint_epochs == 0 || run_.finished() || state.best_step == state.step) records_.save();
    if (test_now && run_.events.on_epoch) run_.events.on_epoch(report);
    records_.report_unreadable();
    return true;
  }

  // Of an epoch that is yet to be tested.
  EpochReport train_report() const {
    const RunState& state = run_.state;
    EpochReport report;
    report.epoch = run_.epochs_done();
    report.epochs = run_.recipe.all_epochs();
    report.train = run_.metric_line("train");
    report.train.loss = state.loss_sum / static_cast<double>(state.seen);
    report.train.acc_soft = static_cast<double>(state.right) / static_cast<double>(state.seen);
    report.train.img_per_s = run_.pace.images_per_second();
    report.train.data_wait = run_.pace.data_wait();
    return report;
  }

  TrainingRun run_;
  RunRecords records_;
  EpochTests tests_;
  StepLoop steps_;
};

}  // namespace

TrainOutcome train(const RunDirectory& run, const Recipe& recipe, const DataSource& source, const TrainEvents& events,
                   const std::atomic<bool>& stop, RankGroup* ranks) {
  torch::set_num_threads(static_cast<int>(recipe.threads));
  return Trainer(&run.files(), run.files().read_graph(), recipe, source, events, stop, ranks).run();
}

TrainOutcome train_along(RankGroup& ranks, const Recipe& recipe, const Graph& graph, const DataSource& source,
                         const std::atomic<bool>& stop) {
  torch::set_num_threads(static_cast<int>(recipe.threads));
  const TrainEvents silent;
  return Trainer(nullptr, graph, recipe, source, silent, stop, &ranks).run();
}

}  // namespace onetap
