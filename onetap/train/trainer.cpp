#include "onetap/train/trainer.h"

#include "onetap/base/fail.h"
#include "onetap/batches/device_batches.h"
#include "onetap/batches/mix.h"
#include "onetap/batches/recalibrate.h"
#include "onetap/graph/method.h"
#include "onetap/journal/run_journal.h"
#include "onetap/nn/evaluation_scope.h"
#include "onetap/nn/graph_module.h"
#include "onetap/ranks/sync_norm.h"
#include "onetap/recipe/schedule.h"
#include "onetap/train/attention_record.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/engine_choice.h"
#include "onetap/train/evaluate.h"
#include "onetap/train/finite.h"
#include "onetap/train/frozen_layers.h"
#include "onetap/train/init.h"
#include "onetap/train/pace.h"
#include "onetap/train/quantized_training.h"
#include "onetap/train/rank_share.h"
#include "onetap/train/resolve.h"
#include "onetap/train/teacher.h"
#include "onetap/train/weight_average.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace fs = std::filesystem;

namespace onetap {
namespace {

nn::GraphModule make_module(const Recipe& recipe, const Graph& graph, torch::Device device) {
  torch::manual_seed(recipe.seed);
  nn::GraphModule module(graph,
                         recipe.weight_init == InitRule::kFanOut ? nn::WeightInit::kFanOut : nn::WeightInit::kDefault);
  module->to(device);
  freeze_layers(recipe, module);
  return module;
}

std::optional<QuantizedTraining> make_quantized(const Recipe& recipe, const nn::GraphModule& module) {
  if (recipe.quantize == Quantize::kNone) return std::nullopt;
  return QuantizedTraining(module);
}

// The set that epochs are tested and chosen by, as the test set: the images that were held out, where there are any.
DataSource watched_source(DataSource source) {
  if (source.validation != nullptr) source.test = source.validation;
  return source;
}

class Trainer {
 public:
  // `files` of rank 0 alone.
  Trainer(const RunFiles* files, const Graph& graph, const Recipe& recipe, const DataSource& source,
          const TrainEvents& events, const std::atomic<bool>& stop, RankGroup* ranks)
      : files_(files),
        recipe_(recipe),
        source_(watched_source(source)),
        held_test_(source.validation != nullptr ? source.test : nullptr),
        events_(events),
        stop_(stop),
        device_(parse_device(recipe.device)),
        graph_(graph),
        view_(recipe_view(graph_, source)),
        schedule_(recipe, BatchStream::batch_count(source.train->size(), recipe.batch_size)),
        module_(make_module(recipe, graph_, device_)),
        quantized_(make_quantized(recipe, module_)),
        optimizer_(make_optimizer(recipe, module_)),
        average_(module_, recipe.ema),
        share_(ranks) {
    check_network(graph_, source);
    check_patience(recipe, graph_);
    // Every rank would follow the ranges of its own images.
    if (quantized_ && share_.part().of > 1) {
      fail_usage("[train] expected one process with --quantize, got {}", share_.part().of);
    }
    share_.check_batches(recipe, source.train->size());
    if (files_ != nullptr) {
      // A checkpoint has the weights, and what a run started from may be gone.
      if (CheckpointFolder(files_->checkpoints()).list().empty()) start_from_init();
      restore();
      if (quantized_ && state_.step == 0) calibrate_ranges();
    }
    join_ranks();
    if (state_.step > 0) saved_ = place();  // on all ranks, for they save together
    find_teacher();
    engine_ = choose_engine(recipe_, graph_, source_, schedule_, module_, *optimizer_, events_.on_notice, ranks,
                            gives_up_waiting(), teacher_);
    if (engine_ == nullptr) share_.watch_gradients(module_);
    for (const auto& item : module_->named_parameters()) parameters_.emplace_back(item.key(), item.value());
    if (files_ == nullptr) return;
    journal_.emplace(*files_, state_, events_.on_notice, &recipe_);
  }

  TrainOutcome run() try {
    if (state_.step == 0 && !recipe_.init.empty()) test_start();
    pace_.start_sitting(state_.step, state_.wall_s);
    while (!finished()) {
      const bool epoch_done = (at_epoch_end() || run_epoch()) && finish_epoch();
      const bool stopping = share_.any(stop_);
      if ((!epoch_done || stopping) && saved_ != place()) save();
      if (stopping && !finished()) return TrainOutcome::kInterrupted;
    }
    return TrainOutcome::kFinished;
  } catch (const RankError& problem) {  // other ranks know nothing of checkpoints
    throw with_checkpoint(problem);
  } catch (const NotFinite& problem) {
    throw with_checkpoint(Error(problem.kind(), fmt::format("{} at step {} (epoch {})", problem.what(), state_.step,
                                                            (state_.step - 1) / schedule_.steps_per_epoch() + 1)),
                          " (a new run with a lower --lr or a longer --warmup-epochs may not diverge)");
  }

  // For the end of an error's message.
  std::string last_checkpoint() const {
    if (files_ == nullptr) return "the last good checkpoint is with rank 0";
    return last_checkpoint_.empty() ? "there is no checkpoint yet"
                                    : "the last good checkpoint is " + last_checkpoint_.string();
  }

 private:
  Error with_checkpoint(const Error& problem, const char* advice = "") const {
    return Error(problem.kind(), fmt::format("{}; {}{}", problem.what(), last_checkpoint(), advice));
  }

  void start_from_init() {
    import_init(recipe_, module_, [this](const std::string& text) { notice(text); });
    average_ = WeightAverage(module_, recipe_.ema);
  }

  // Of values, before anything is rounded: by images of the training set, which a resumed run does not see again.
  void calibrate_ranges() {
    constexpr int64_t kImages = 512;
    const torch::NoGradGuard no_grad;
    const nn::EvaluationScope evaluation(module_);
    StreamOptions options = recipe_stream(recipe_, view_, /*train=*/true);
    options.stopped = gives_up_waiting();
    DeviceBatches batches(*source_.train, options, device_);
    Batch batch;
    int64_t images = 0;
    quantized_->calibrate([&] {
      if (images >= kImages || !batches.next(batch)) return false;
      module_->forward(batch.images);
      images += batch.images.size(0);
      return true;
    });
    average_ = WeightAverage(module_, recipe_.ema);
    notice(fmt::format("ranges of values are from {} training images", images));
  }

  // From here on all ranks stand where rank 0 does.
  void join_ranks() {
    if (share_.group() == nullptr) return;
    share_.check_data(source_.train->size(), source_.test->size());
    share_.group()->start(device_);
    state_ = share_.spread(state_);
    for (const auto& tensors : {nn::state_of(*module_), optimizer_->state(), average_.state()}) share_.spread(tensors);
    if (recipe_.sync_norm && share_.several()) synchronise_norms(module_, *share_.group());
  }

  // Once all ranks stand where rank 0 does, which reads it.
  void find_teacher() {
    if (recipe_.teacher.empty() || finished()) return;
    LoadedTeacher loaded;
    if (files_ != nullptr) {
      loaded = load_teacher(recipe_, graph_, source_, events_.on_notice);
      check_same_teacher(loaded, state_, recipe_);
      state_.teacher = loaded.checksum;
    }
    teacher_ = share_.spread_network(loaded.module, device_);
    teacher_->eval();
  }

  // The newest checkpoint that loads; a damaged one is passed over for the one before it.
  void restore() {
    const CheckpointFolder folder(files_->checkpoints());
    const FoundCheckpoint found = folder.load_newest(
        [&](const Checkpoint& checkpoint) {
          CheckpointFolder::load(checkpoint, module_, *optimizer_, taps_, average_);
        },
        events_.on_notice);
    if (found.checkpoint) {
      if (found.passed_over) folder.keep_aside_after(&*found.checkpoint);
      state_ = found.checkpoint->state;
      last_checkpoint_ = found.checkpoint->path;
      notice(fmt::format("resuming after step {} of {} from {}", state_.step, schedule_.total_steps(),
                         last_checkpoint_.string()));
      return;
    }
    if (found.passed_over) {  // a damaged file may have been read in part
      notice("there is no good checkpoint: starting over");
      folder.keep_aside_after(nullptr);
      module_ = make_module(recipe_, graph_, device_);
      quantized_ = make_quantized(recipe_, module_);
      optimizer_ = make_optimizer(recipe_, module_);
      taps_ = AttentionRecord();
      start_from_init();
    }
  }

  bool at_epoch_end() const {
    return state_.step > 0 && state_.step % schedule_.steps_per_epoch() == 0 && !state_.epoch_logged;
  }
  bool finished() const { return (state_.step == schedule_.total_steps() || state_.ended) && state_.epoch_logged; }
  // Whether the last epochs were no better. Before the temperature has ended, taps and accuracy still change with it.
  bool out_of_patience() const {
    if (recipe_.patience == 0 || state_.best_step < 0) return false;
    const int64_t since = std::max(state_.best_step, has_soft_form(graph_) ? schedule_.settled_step() : 0);
    return state_.step - since >= recipe_.patience * schedule_.steps_per_epoch();
  }
  // Checkpoints of one place in the run are the same.
  std::pair<int64_t, bool> place() const { return {state_.step, state_.epoch_logged}; }
  int64_t epoch() const { return state_.step / schedule_.steps_per_epoch(); }

  StreamOptions stream_options(bool train) const {
    StreamOptions options = recipe_stream(recipe_, view_, train, share_.part());
    options.stopped = gives_up_waiting();
    return options;
  }

  // Whether a wait for data ends because the run is to stop: data may never come (a file system that does not answer).
  // One process stops at once, after its last step. A rank waits some seconds more, for ranks stop together, after a
  // step of all of them.
  std::function<bool()> gives_up_waiting() const {
    return [this, since = std::optional<Clock::time_point>()]() mutable {
      constexpr double kRankPatience = 5;  // seconds
      if (!stop_) return false;
      if (!since) since = Clock::now();
      return !share_.several() || seconds_since(*since) > kRankPatience;
    };
  }

  // A rank that gave up cannot stop together with the others, which wait for its part of the step.
  void check_stopped_alone() const {
    if (!share_.several()) return;
    fail("[train] expected data for step {}, got none when told to stop; {}", state_.step + 1, last_checkpoint());
  }

  // Steps to the end of the epoch; false if asked to stop before.
  bool run_epoch() {
    const int64_t first = state_.step % schedule_.steps_per_epoch();
    StreamOptions options = stream_options(true);
    options.epoch = epoch();
    options.first_batch = first;
    const RunState before = state_;
    if (first == 0) {
      state_.loss_sum = 0;
      state_.right = state_.seen = 0;
      if (recipe_.restart_momentum) optimizer_->restart();
    }
    state_.epoch_logged = false;
    pace_.start_epoch();
    module_->train();
    const bool done = engine_ != nullptr ? run_engine(first) : run_plain(options);
    if (state_.step == before.step) state_ = before;  // stopped before a step: still at the end of the epoch before
    return done;
  }

  bool run_plain(const StreamOptions& options) {
    DeviceBatches batches(*source_.train, options, device_);
    Batch batch;
    while (batches.next(batch)) {
      pace_.set_waited(batches.waited());
      step(batch);
      const bool at_end = state_.step % schedule_.steps_per_epoch() == 0;
      if (at_end) break;
      if (stopping_) return false;
      if (recipe_.checkpoint_steps > 0 && state_.step % recipe_.checkpoint_steps == 0) save();
    }
    if (batches.stopped()) check_stopped_alone();
    return !batches.stopped();
  }

  void step(const Batch& batch) {
    const double lr = schedule_.learning_rate(state_.step);
    module_->set_temperature(schedule_.temperature(state_.step));
    const int64_t count = batch.labels.size(0), step_images = images_of_step();
    StepTotals totals;
    totals.stop = stop_;
    optimizer_->zero_grad();
    const Mix mix = draw_mix(mix_, view_.size, recipe_.seed, state_.step);
    const auto images = mix_.active() ? mixed(batch.images, mix) : batch.images;
    nn::Targets targets(batch.labels);
    if (mix_.active()) {
      targets.others = batch.labels.flip(0);
      targets.share = torch::full({}, mix.share, images.options());
    }
    for (int64_t part = 0; part < recipe_.accumulate; ++part) {
      const Portion portion = portion_of(count, part, recipe_.accumulate);
      if (portion.count == 0) continue;
      if (part + 1 == recipe_.accumulate) share_.expect_gradients();
      add_gradients(images.narrow(0, portion.first, portion.count), targets.part(portion), step_images, totals);
    }
    share_.sum_gradients();
    totals = share_.total(totals);
    ++state_.step;
    check_loss(totals.loss);
    optimizer_->step(lr);
    module_->after_step();
    stopping_ = totals.stop;
    state_.loss_sum += totals.loss;
    state_.right += totals.right;
    state_.seen += totals.images;
    pace_.add_images(totals.images);
    average_.update(state_.step);
    report_step(lr);
  }

  // Of the images' share in the mean loss of a step of `step_images`.
  void add_gradients(const torch::Tensor& images, nn::Targets targets, int64_t step_images, StepTotals& totals) {
    if (teacher_) {
      const torch::NoGradGuard no_grad;
      targets.teacher = forward(teacher_, images);
    }
    const auto logits = forward(module_, images);
    const auto loss = nn::objective_loss(logits, targets, recipe_objective(recipe_));
    const int64_t count = images.size(0);
    (loss * (static_cast<double>(count) / static_cast<double>(step_images))).backward();
    totals.loss += loss.item<double>() * static_cast<double>(count);
    totals.right += logits.detach().argmax(1).eq(targets.main_labels()).sum().item<int64_t>();
    totals.images += count;
  }

  // Of all ranks.
  int64_t images_of_step() const {
    const int64_t first = state_.step % schedule_.steps_per_epoch() * recipe_.batch_size;
    return std::min(recipe_.batch_size, source_.train->size() - first);
  }

  // In 32 bits, whatever the precision within.
  torch::Tensor forward(nn::GraphModule& network, const torch::Tensor& images) const {
    const AutocastScope autocast(recipe_, device_);
    return network->forward(images).to(torch::kFloat32);
  }

  // The engine's steps in portions, so that the run can be watched and stopped without making the GPU wait.
  bool run_engine(int64_t first) {
    constexpr double kPortionSeconds = 0.5;
    const int64_t per_epoch = schedule_.steps_per_epoch();
    int64_t portion = 1;
    engine_->start_epoch(epoch(), first, state_.step, {state_.loss_sum, state_.right, state_.seen});
    for (int64_t at = first; at < per_epoch;) {
      int64_t wanted = std::min(portion, per_epoch - at);
      if (recipe_.checkpoint_steps > 0) {
        wanted = std::min(wanted, recipe_.checkpoint_steps - state_.step % recipe_.checkpoint_steps);
      }
      const auto portion_started = Clock::now();
      const int64_t steps = engine_->run(wanted, [this](int64_t step) { average_.update(step); });
      if (steps < wanted) check_stopped_alone();
      if (steps == 0) return false;
      const fused::Sums sums = engine_->sums();
      pace_.set_waited(engine_->waited());
      state_.step += steps;
      check_loss(sums.loss);
      check_values(parameters_);  // a kernel may pass over a value that is no number, and the loss with it
      const double taken = std::max(1e-6, seconds_since(portion_started));
      portion = share_.agree(std::clamp<int64_t>(
          static_cast<int64_t>(static_cast<double>(steps) * kPortionSeconds / taken), 1, 2 * portion));
      pace_.add_images(sums.images - state_.seen);
      state_.loss_sum = sums.loss;
      state_.right = sums.right;
      state_.seen = sums.images;
      at += steps;
      report_step(schedule_.learning_rate(state_.step - 1));
      if (at == per_epoch) break;
      if (share_.any(stop_)) return false;
      if (recipe_.checkpoint_steps > 0 && state_.step % recipe_.checkpoint_steps == 0) save();
    }
    return true;
  }

  // What follows throws NotFinite, on all ranks at once; run() adds where that was. `state_.step` counts the step that
  // is looked at.
  static void check_loss(double value) {
    if (!std::isfinite(value)) throw NotFinite("[train] the loss became " + not_finite_text(value));
  }

  void check_values(const nn::NamedTensors& tensors) const {
    const bool mine = !all_finite(tensors);
    if (!share_.any(mine)) return;
    const std::string name = mine ? fmt::format(" ('{}')", first_not_finite(tensors)) : "";
    throw NotFinite(fmt::format("[train] values of the network became nan or inf{}", name));
  }

  // All that a checkpoint would hold: weights, statistics, momenta and averages.
  void check_values() const {
    nn::NamedTensors all = nn::state_of(*module_);
    all.insert(all.end(), optimizer_->state().begin(), optimizer_->state().end());
    all.insert(all.end(), average_.state().begin(), average_.state().end());
    check_values(all);
  }

  void report_step(double lr) const {
    if (!events_.on_step) return;
    StepReport report;
    report.step = state_.step;
    report.total_steps = schedule_.total_steps();
    report.steps_per_epoch = schedule_.steps_per_epoch();
    report.epoch = (state_.step - 1) / report.steps_per_epoch + 1;
    report.epochs = recipe_.all_epochs();
    report.step_in_epoch = (state_.step - 1) % report.steps_per_epoch + 1;
    report.loss = state_.loss_sum / static_cast<double>(state_.seen);
    report.accuracy = static_cast<double>(state_.right) / static_cast<double>(state_.seen);
    report.lr = lr;
    report.temperature = schedule_.temperature(state_.step);
    report.img_per_s = pace_.images_per_second();
    report.data_wait = pace_.data_wait();
    report.eta_s = pace_.seconds_left(state_.step, report.total_steps);
    events_.on_step(report);
  }

  // Test, metrics, checkpoint; false if asked to stop during the test.
  bool finish_epoch() {
    check_values();
    const int64_t done = state_.step / schedule_.steps_per_epoch();
    EpochReport report;
    report.epoch = done;
    report.epochs = recipe_.all_epochs();
    report.train = common_line("train");
    report.train.loss = state_.loss_sum / static_cast<double>(state_.seen);
    report.train.acc_soft = static_cast<double>(state_.right) / static_cast<double>(state_.seen);
    report.train.img_per_s = pace_.images_per_second();
    report.train.data_wait = pace_.data_wait();

    bool is_last = done == recipe_.all_epochs() || state_.ended;  // ended: and stopped in the tests behind that
    const bool test_now = done % recipe_.eval_every == 0 || is_last;
    if (test_now) {
      module_->set_temperature(schedule_.temperature(state_.step));
      if (is_last && !recalibrate_norms()) return false;
      if (!test_epoch(report.test)) return false;
      if (!is_last && out_of_patience()) {
        notice(fmt::format("stopping after epoch {}: no better accuracy for {} epochs", done, recipe_.patience));
        is_last = state_.ended = true;
        if (recipe_.recalibrate > 0 && !(recalibrate_norms() && test_epoch(report.test))) return false;
      }
      if (is_last && held_test_ != nullptr && !test_held(report.held_test)) return false;
    }
    state_.epoch_logged = true;
    log(report, test_now);
    if (done % recipe_.checkpoint_epochs == 0 || finished() || state_.best_step == state_.step) save();
    if (test_now && events_.on_epoch) events_.on_epoch(report);
    report_unreadable();
    return true;
  }

  // Nothing if the run is to stop.
  std::optional<EvalResult> test() {
    return engine_ != nullptr ? evaluate(module_, *engine_, eval_options())
                              : evaluate(module_, *source_.test, eval_options());
  }

  // Says what the weights from elsewhere are worth before they change.
  void test_start() {
    module_->set_temperature(schedule_.temperature(0));
    const auto result = test();
    if (!result) return;
    const std::string soft = fmt::format("{:.2f} %", 100 * result->soft.accuracy);
    const std::string hard = fmt::format("{:.2f} %", 100 * result->hard.accuracy);
    notice(fmt::format("before the first step: test {}",
                       has_soft_form(graph_) ? fmt::format("soft {} hard {}", soft, hard) : soft));
  }

  // On the set that is watched; false if asked to stop.
  bool test_epoch(MetricLine& line) {
    const auto started = Clock::now();
    const WeightAverage::Scope averaged(average_);
    share_.spread_statistics(module_);
    const auto result = test();
    if (!result) return false;
    line = test_line(held_test_ != nullptr ? "validation" : "test", *result, started);
    if (result->hard.accuracy > state_.best_accuracy) {
      state_.best_accuracy = result->hard.accuracy;
      state_.best_step = state_.step;
    }
    return true;
  }

  // On the test set of a run that watches another one; false if asked to stop.
  bool test_held(std::optional<MetricLine>& line) {
    const auto started = Clock::now();
    const WeightAverage::Scope averaged(average_);
    const auto result = evaluate(module_, *held_test_, eval_options());
    if (result) line = test_line("test", *result, started);
    return result.has_value();
  }

  MetricLine test_line(const char* split, const EvalResult& result, Clock::time_point started) const {
    MetricLine line = common_line(split);
    line.loss = result.soft.loss;
    line.acc_soft = result.soft.accuracy;
    line.acc_hard = result.hard.accuracy;
    line.img_per_s = static_cast<double>(result.images) / seconds_since(started);
    return line;
  }

  // Once for every new one.
  void report_unreadable() {
    std::set<std::string> names;  // parts of one folder name the same files
    for (const Dataset* data : {source_.train.get(), source_.test.get(), held_test_.get()}) {
      if (data == nullptr) continue;
      for (const std::string& name : data->unreadable()) names.insert(name);
    }
    const size_t count = names.size();
    if (count <= unreadable_) return;
    unreadable_ = count;
    notice(
        fmt::format("{} image{} not decode; the next of the class took {} place ('onetap data check' names them, "
                    "--strict refuses)",
                    count, count == 1 ? " does" : "s do", count == 1 ? "its" : "their"));
  }

  // The statistics of what is tested, kept and frozen: of the average, where there is one. They depend on its weights
  // and the data alone, so a run that is stopped in the last test repeats them. Every rank does all of it: rank 0's are
  // taken, and with synchronised norms all see the same batches.
  // False if the run is to stop.
  bool recalibrate_norms() {
    if (recipe_.recalibrate == 0) return true;
    RecalibrateOptions options;
    options.stream = stream_options(true);
    options.stream.part = {};
    // As many at a time as the memory of a step holds.
    options.stream.batch_size = std::max<int64_t>(1, recipe_.batch_size / (recipe_.accumulate * share_.part().of));
    options.images = recipe_.recalibrate;
    options.device = device_;
    options.progress = [this](int64_t) { return !share_.any(stop_); };
    notice("recomputing batch norm's statistics with the kept taps");
    const WeightAverage::Scope averaged(average_);
    const auto images = recalibrate(module_, *source_.train, options);
    if (!images) return false;
    notice(fmt::format("batch norm's statistics are from {} training images", *images));
    share_.spread_statistics(module_);
    if (average_.active()) average_.take_present();
    return true;
  }

  EvalOptions eval_options() const {
    EvalOptions options;
    options.stream = stream_options(false);
    options.hard_mode = recipe_.binarize == Binarize::kRound ? nn::AttentionMode::kRound : nn::AttentionMode::kHard;
    options.device = device_;
    options.progress = [this](int64_t images) {
      const int64_t all = source_.test->size();
      if (events_.on_test_images) events_.on_test_images(std::min(all, images * share_.part().of), all);
      return !stop_.load();
    };
    options.ranks = share_.group();
    return options;
  }

  MetricLine common_line(const char* split) const {
    MetricLine line;
    line.step = state_.step;
    line.epoch = state_.step / schedule_.steps_per_epoch();
    line.split = split;
    line.lr = schedule_.learning_rate(state_.step - 1);
    line.temperature = schedule_.temperature(state_.step);
    line.wall_s = pace_.wall_s();
    return line;
  }

  void log(const EpochReport& report, bool tested) {
    if (!journal_) return;
    RunJournal::Epoch epoch;
    epoch.train = report.train;
    if (tested) {
      if (held_test_ != nullptr) {
        epoch.validation = report.test;
        epoch.test = report.held_test;
      } else {
        epoch.test = report.test;
      }
      epoch.attention = attention_line();
    }
    journal_->write(epoch);
  }

  std::optional<AttentionLine> attention_line() {
    if (module_->trained_layers().empty()) return std::nullopt;
    const WeightAverage::Scope averaged(average_);
    AttentionLine line = taps_.take(module_);
    if (line.layers.empty()) return std::nullopt;
    line.step = state_.step;
    line.epoch = state_.step / schedule_.steps_per_epoch();
    line.temperature = schedule_.temperature(state_.step);
    return line;
  }

  void save() {
    check_values();
    saved_ = place();
    if (!journal_) return;
    journal_->sync(state_);  // before the checkpoint that counts on it
    state_.wall_s = pace_.wall_s();
    state_.temperature = schedule_.temperature(state_.step);
    try {
      const CheckpointFolder folder(files_->checkpoints());
      last_checkpoint_ = folder.write(state_, module_, *optimizer_, taps_, average_, recipe_.keep_checkpoints);
    } catch (const Error& problem) {
      throw with_checkpoint(problem);
    }
  }

  void notice(const std::string& text) const {
    if (events_.on_notice) events_.on_notice(text);
  }

  const RunFiles* files_;
  const Recipe& recipe_;
  const DataSource source_;                         // its test set is the one that is watched
  const std::shared_ptr<const Dataset> held_test_;  // tested at the end alone; null: the one above
  const TrainEvents& events_;
  const std::atomic<bool>& stop_;
  const torch::Device device_;
  const c10::DeviceGuard on_device_{device_};  // work without a tensor to tell goes there, too
  const Graph graph_;
  const View view_;
  const Schedule schedule_;
  const MixOptions mix_ = recipe_mix(recipe_);
  nn::GraphModule module_;
  std::optional<QuantizedTraining> quantized_;  // none: in floats
  nn::NamedTensors parameters_;                 // the module's
  std::unique_ptr<Optimizer> optimizer_;
  WeightAverage average_;
  RankShare share_;
  nn::GraphModule teacher_{nullptr};       // null: none
  std::unique_ptr<fused::Engine> engine_;  // null: LibTorch's autograd, op by op
  RunState state_;
  bool stopping_ = false;  // all ranks know that one was told to stop
  fs::path last_checkpoint_;
  std::optional<RunJournal> journal_;  // rank 0's
  AttentionRecord taps_;
  size_t unreadable_ = 0;  // images that were reported

  Pace pace_;
  std::pair<int64_t, bool> saved_{-1, false};  // place() of the newest checkpoint, on every rank
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
