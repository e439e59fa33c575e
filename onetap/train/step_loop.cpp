#include "onetap/train/step_loop.h"

#include "onetap/base/fail.h"
#include "onetap/batches/device_batches.h"
#include "onetap/batches/mix.h"
#include "onetap/train/engine_choice.h"
#include "onetap/train/finite.h"
#include "onetap/train/resolve.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

void check_loss(double value) {
  if (!std::isfinite(value)) throw NotFinite("[train] the loss became " + not_finite_text(value));
}

}  // namespace

StepLoop::StepLoop(TrainingRun& run, RunRecords& records) : run_(run), records_(records), mix_(recipe_mix(run.recipe)) {
  for (const auto& item : run_.module->named_parameters()) parameters_.emplace_back(item.key(), item.value());
}

bool StepLoop::run_epoch() {
  RunState& state = run_.state;
  const int64_t first = state.step % run_.schedule.steps_per_epoch();
  StreamOptions options = run_.stream_options(/*train=*/true);
  options.epoch = run_.epochs_done();
  options.first_batch = first;
  const RunState before = state;
  if (first == 0) {
    state.loss_sum = 0;
    state.right = state.seen = 0;
    if (run_.recipe.restart_momentum) run_.optimizer->restart();
  }
  state.epoch_logged = false;
  run_.pace.start_epoch();
  run_.module->train();
  const bool done = run_.engine != nullptr ? run_engine(first) : run_plain(options);
  if (state.step == before.step) state = before;  // stopped before a step: still at the end of the epoch before
  return done;
}

bool StepLoop::run_plain(const StreamOptions& options) {
  DeviceBatches batches(*run_.source.train, options, run_.device);
  Batch batch;
  while (batches.next(batch)) {
    run_.pace.set_waited(batches.waited());
    step(batch);
    const bool at_end = run_.state.step % run_.schedule.steps_per_epoch() == 0;
    if (at_end) break;
    if (stopping_) return false;
    if (wants_checkpoint()) records_.save();
  }
  if (batches.stopped()) check_stopped_alone();
  return !batches.stopped();
}

void StepLoop::step(const Batch& batch) {
  const Recipe& recipe = run_.recipe;
  RunState& state = run_.state;
  const double lr = run_.schedule.learning_rate(state.step);
  run_.module->set_temperature(run_.schedule.temperature(state.step));
  const int64_t count = batch.labels.size(0), step_images = images_of_step();
  StepTotals totals;
  totals.stop = run_.stop;
  run_.optimizer->zero_grad();
  const Mix mix = draw_mix(mix_, run_.view.size, recipe.seed, state.step);
  const auto images = mix_.active() ? mixed(batch.images, mix) : batch.images;
  nn::Targets targets(batch.labels);
  if (mix_.active()) {
    targets.others = batch.labels.flip(0);
    targets.share = torch::full({}, mix.share, images.options());
  }
  for (int64_t part = 0; part < recipe.accumulate; ++part) {
    const Portion portion = portion_of(count, part, recipe.accumulate);
    if (portion.count == 0) continue;
    if (part + 1 == recipe.accumulate) run_.share.expect_gradients();
    add_gradients(images.narrow(0, portion.first, portion.count), targets.part(portion), step_images, totals);
  }
  run_.share.sum_gradients();
  totals = run_.share.total(totals);
  ++state.step;
  check_loss(totals.loss);
  run_.optimizer->step(lr);
  run_.module->after_step();
  stopping_ = totals.stop;
  state.loss_sum += totals.loss;
  state.right += totals.right;
  state.seen += totals.images;
  run_.pace.add_images(totals.images);
  run_.average.update(state.step);
  run_.settle_if_hard();
  report_step(lr);
}

// Of the images' share in the mean loss of a step of `step_images`.
void StepLoop::add_gradients(const torch::Tensor& images, nn::Targets targets, int64_t step_images,
                             StepTotals& totals) {
  if (run_.teacher) {
    const torch::NoGradGuard no_grad;
    targets.teacher = forward(run_.teacher, images);
  }
  const auto logits = forward(run_.module, images);
  const auto loss = nn::objective_loss(logits, targets, recipe_objective(run_.recipe));
  const int64_t count = images.size(0);
  (loss * (static_cast<double>(count) / static_cast<double>(step_images))).backward();
  totals.loss += loss.item<double>() * static_cast<double>(count);
  totals.right += logits.detach().argmax(1).eq(targets.main_labels()).sum().item<int64_t>();
  totals.images += count;
}

// In 32 bits, whatever the precision within.
torch::Tensor StepLoop::forward(nn::GraphModule& network, const torch::Tensor& images) const {
  const AutocastScope autocast(run_.recipe, run_.device);
  return network->forward(images).to(torch::kFloat32);
}

// Of all ranks.
int64_t StepLoop::images_of_step() const {
  const int64_t batch = run_.recipe.batch_size;
  const int64_t first = run_.state.step % run_.schedule.steps_per_epoch() * batch;
  return std::min(batch, run_.source.train->size() - first);
}

// The engine's steps in portions, so that the run can be watched and stopped without making the GPU wait.
bool StepLoop::run_engine(int64_t first) {
  constexpr double kPortionSeconds = 0.5;
  const int64_t per_epoch = run_.schedule.steps_per_epoch(), between_saves = run_.recipe.checkpoint_steps;
  RunState& state = run_.state;
  int64_t portion = 1;
  run_.engine->start_epoch(run_.epochs_done(), first, state.step, {state.loss_sum, state.right, state.seen});
  for (int64_t at = first; at < per_epoch;) {
    int64_t wanted = std::min(portion, per_epoch - at);
    if (between_saves > 0) wanted = std::min(wanted, between_saves - state.step % between_saves);
    if (state.step < run_.schedule.hard_step()) wanted = std::min(wanted, run_.schedule.hard_step() - state.step);
    const auto portion_started = Clock::now();
    const int64_t steps = run_.engine->run(wanted, [this](int64_t step) { run_.average.update(step); });
    if (steps < wanted) check_stopped_alone();
    if (steps == 0) return false;
    const fused::Sums sums = run_.engine->sums();
    run_.pace.set_waited(run_.engine->waited());
    state.step += steps;
    check_loss(sums.loss);
    run_.check_values(parameters_);  // a kernel may pass over a value that is no number, and the loss with it
    run_.settle_if_hard();
    const double taken = std::max(1e-6, seconds_since(portion_started));
    portion = run_.share.agree(std::clamp<int64_t>(
        static_cast<int64_t>(static_cast<double>(steps) * kPortionSeconds / taken), 1, 2 * portion));
    run_.pace.add_images(sums.images - state.seen);
    state.loss_sum = sums.loss;
    state.right = sums.right;
    state.seen = sums.images;
    at += steps;
    report_step(run_.schedule.learning_rate(state.step - 1));
    if (at == per_epoch) break;
    if (run_.share.any(run_.stop)) return false;
    if (wants_checkpoint()) records_.save();
  }
  return true;
}

bool StepLoop::wants_checkpoint() const {
  return run_.recipe.checkpoint_steps > 0 && run_.state.step % run_.recipe.checkpoint_steps == 0;
}

// A rank that gave up cannot stop together with the others, which wait for its part of the step.
void StepLoop::check_stopped_alone() const {
  if (!run_.share.several()) return;
  fail("[train] expected data for step {}, got none when told to stop; {}", run_.state.step + 1,
       records_.last_checkpoint());
}

void StepLoop::report_step(double lr) const {
  if (!run_.events.on_step) return;
  const RunState& state = run_.state;
  StepReport report;
  report.step = state.step;
  report.total_steps = run_.schedule.total_steps();
  report.steps_per_epoch = run_.schedule.steps_per_epoch();
  report.epoch = (state.step - 1) / report.steps_per_epoch + 1;
  report.epochs = run_.recipe.all_epochs();
  report.step_in_epoch = (state.step - 1) % report.steps_per_epoch + 1;
  report.loss = state.loss_sum / static_cast<double>(state.seen);
  report.accuracy = static_cast<double>(state.right) / static_cast<double>(state.seen);
  report.lr = lr;
  report.temperature = run_.schedule.temperature(state.step);
  report.img_per_s = run_.pace.images_per_second();
  report.data_wait = run_.pace.data_wait();
  report.eta_s = run_.pace.seconds_left(state.step, report.total_steps);
  run_.events.on_step(report);
}

}  // namespace onetap
