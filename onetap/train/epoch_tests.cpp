#include "onetap/train/epoch_tests.h"

#include "onetap/base/fail.h"
#include "onetap/batches/recalibrate.h"
#include "onetap/graph/method.h"

#include <algorithm>

namespace onetap {

// Nothing if the run is to stop.
std::optional<EvalResult> EpochTests::test() {
  return run_.engine != nullptr ? evaluate(run_.module, *run_.engine, eval_options())
                                : evaluate(run_.module, *run_.source.test, eval_options());
}

void EpochTests::test_start() {
  run_.module->set_temperature(run_.schedule.temperature(0));
  const auto result = test();
  if (!result) return;
  const std::string soft = fmt::format("{:.2f} %", 100 * result->soft.accuracy);
  const std::string hard = fmt::format("{:.2f} %", 100 * result->hard.accuracy);
  run_.notice(fmt::format("before the first step: test {}",
                          has_soft_form(run_.graph) ? fmt::format("soft {} hard {}", soft, hard) : soft));
}

bool EpochTests::test_epoch(MetricLine& line) {
  const auto started = Clock::now();
  const WeightAverage::Scope averaged(run_.average);
  run_.share.spread_statistics(run_.module);
  const auto result = test();
  if (!result) return false;
  line = test_line(run_.held_test != nullptr ? "validation" : "test", *result, started);
  if (result->hard.accuracy > run_.state.best_accuracy) {
    run_.state.best_accuracy = result->hard.accuracy;
    run_.state.best_step = run_.state.step;
  }
  return true;
}

bool EpochTests::test_held(std::optional<MetricLine>& line) {
  const auto started = Clock::now();
  const WeightAverage::Scope averaged(run_.average);
  const auto result = evaluate(run_.module, *run_.held_test, eval_options());
  if (result) line = test_line("test", *result, started);
  return result.has_value();
}

MetricLine EpochTests::test_line(const char* split, const EvalResult& result, Clock::time_point started) const {
  MetricLine line = run_.metric_line(split);
  line.loss = result.soft.loss;
  line.acc_soft = result.soft.accuracy;
  line.acc_hard = result.hard.accuracy;
  line.img_per_s = static_cast<double>(result.images) / seconds_since(started);
  return line;
}

EvalOptions EpochTests::eval_options() const {
  EvalOptions options;
  options.stream = run_.stream_options(/*train=*/false);
  options.hard_mode = run_.recipe.binarize == Binarize::kRound ? nn::AttentionMode::kRound : nn::AttentionMode::kHard;
  options.device = run_.device;
  options.progress = [this](int64_t images) {
    const int64_t all = run_.source.test->size();
    if (run_.events.on_test_images) run_.events.on_test_images(std::min(all, images * run_.share.part().of), all);
    return !run_.stop.load();
  };
  options.ranks = run_.share.group();
  return options;
}

// Before the temperature has ended, taps and accuracy still change with it.
bool EpochTests::out_of_patience() const {
  const RunState& state = run_.state;
  if (run_.recipe.patience == 0 || state.best_step < 0) return false;
  const int64_t since = std::max(state.best_step, has_soft_form(run_.graph) ? run_.schedule.settled_step() : 0);
  return state.step - since >= run_.recipe.patience * run_.schedule.steps_per_epoch();
}

// The statistics of what is tested, kept and frozen: of the average, where there is one. They depend on its weights and
// the data alone, so a run that is stopped in the last test repeats them. Every rank does all of it: rank 0's are
// taken, and with synchronised norms all see the same batches.
bool EpochTests::recalibrate_norms() {
  const Recipe& recipe = run_.recipe;
  if (recipe.recalibrate == 0) return true;
  RecalibrateOptions options;
  options.stream = run_.stream_options(/*train=*/true);
  options.stream.part = {};
  // As many at a time as the memory of a step holds.
  options.stream.batch_size = std::max<int64_t>(1, recipe.batch_size / (recipe.accumulate * run_.share.part().of));
  options.images = recipe.recalibrate;
  options.device = run_.device;
  options.progress = [this](int64_t) { return !run_.share.any(run_.stop); };
  run_.notice("recomputing batch norm's statistics with the kept taps");
  const WeightAverage::Scope averaged(run_.average);
  const auto images = recalibrate(run_.module, *run_.source.train, options);
  if (!images) return false;
  run_.notice(fmt::format("batch norm's statistics are from {} training images", *images));
  run_.share.spread_statistics(run_.module);
  if (run_.average.active()) run_.average.take_present();
  return true;
}

}  // namespace onetap
