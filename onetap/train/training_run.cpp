#include "onetap/train/training_run.h"

#include "onetap/base/fail.h"
#include "onetap/batches/device_batches.h"
#include "onetap/nn/evaluation_scope.h"
#include "onetap/ranks/sync_norm.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/engine_choice.h"
#include "onetap/train/finite.h"
#include "onetap/train/frozen_layers.h"
#include "onetap/train/init.h"
#include "onetap/train/plain_norms.h"
#include "onetap/train/resolve.h"
#include "onetap/train/teacher.h"

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

}  // namespace

TrainingRun::TrainingRun(const RunFiles* run_files, const Graph& run_graph, const Recipe& run_recipe,
                         const DataSource& data, const TrainEvents& told, const std::atomic<bool>& stopped,
                         RankGroup* ranks)
    : files(run_files),
      recipe(run_recipe),
      source(watched_source(data)),
      held_test(data.validation != nullptr ? data.test : nullptr),
      events(told),
      stop(stopped),
      device(parse_device(recipe.device)),
      graph(run_graph),
      view(recipe_view(recipe, graph, data)),
      schedule(recipe, BatchStream::batch_count(data.train->size(), recipe.batch_size)),
      module(make_module(recipe, graph, device)),
      quantized(make_quantized(recipe, module)),
      optimizer(make_optimizer(recipe, module)),
      average(module, recipe.ema),
      share(ranks) {
  check_network(graph, data);
  check_patience(recipe, graph);
  // Every rank would follow the ranges of its own images.
  if (quantized && share.part().of > 1) {
    fail_usage("[train] expected one process with --quantize, got {}", share.part().of);
  }
  share.check_batches(recipe, data.train->size());
  if (files != nullptr) {
    // A checkpoint has the weights, and what a run started from may be gone.
    if (CheckpointFolder(files->checkpoints()).list().empty()) start_from_init();
    restore();
    if (quantized && state.step == 0) calibrate_ranges();
    if (!quantized && state.step == 0) give_norms_statistics();
  }
  join_ranks();
  if (stopped_at_start_) return;
  find_teacher();
  engine = choose_engine(recipe, graph, source, schedule, module, *optimizer, events.on_notice, ranks,
                         gives_up_waiting(), teacher);
  if (engine == nullptr) share.watch_gradients(module);
}

bool TrainingRun::at_epoch_end() const {
  return state.step > 0 && state.step % schedule.steps_per_epoch() == 0 && !state.epoch_logged;
}

bool TrainingRun::finished() const {
  return (state.step == schedule.total_steps() || state.ended) && state.epoch_logged;
}

StreamOptions TrainingRun::stream_options(bool train) const {
  StreamOptions options = recipe_stream(recipe, view, train, share.part());
  options.stopped = gives_up_waiting();
  return options;
}

MetricLine TrainingRun::metric_line(const char* split) const {
  MetricLine line;
  line.step = state.step;
  line.epoch = epochs_done();
  line.split = split;
  line.lr = schedule.learning_rate(state.step - 1);
  line.temperature = schedule.temperature(state.step);
  line.wall_s = pace.wall_s();
  return line;
}

// Whether a wait for data ends because the run is to stop: data may never come (a file system that does not answer).
// One process stops at once, after its last step. A rank waits some seconds more, for ranks stop together, after a
// step of all of them.
std::function<bool()> TrainingRun::gives_up_waiting() const {
  return [this, since = std::optional<Clock::time_point>()]() mutable {
    constexpr double kRankPatience = 5;  // seconds
    if (!stop) return false;
    if (!since) since = Clock::now();
    return !share.several() || seconds_since(*since) > kRankPatience;
  };
}

void TrainingRun::check_values(const nn::NamedTensors& tensors) const {
  const bool mine = !all_finite(tensors);
  if (!share.any(mine)) return;
  const std::string name = mine ? fmt::format(" ('{}')", first_not_finite(tensors)) : "";
  throw NotFinite(fmt::format("[train] values of the network became nan or inf{}", name));
}

void TrainingRun::check_values() const {
  nn::NamedTensors all = nn::state_of(*module);
  all.insert(all.end(), optimizer->state().begin(), optimizer->state().end());
  all.insert(all.end(), average.state().begin(), average.state().end());
  check_values(all);
}

void TrainingRun::settle_if_hard() {
  if (state.step != schedule.hard_step()) return;
  const std::vector<std::string> settled = module->settle();
  optimizer->forget(settled);
  average.take_present(settled);
}

void TrainingRun::notice(const std::string& text) const {
  if (events.on_notice) events.on_notice(text);
}

void TrainingRun::start_from_init() {
  plain_norms_ = import_init(recipe, module, [this](const std::string& text) { notice(text); });
  average = WeightAverage(module, recipe.ema);
}

// The newest checkpoint that loads; a damaged one is passed over for the one before it.
void TrainingRun::restore() {
  const CheckpointFolder folder(files->checkpoints());
  const FoundCheckpoint found = folder.load_newest(
      [&](const Checkpoint& checkpoint) { CheckpointFolder::load(checkpoint, module, *optimizer, taps, average); },
      events.on_notice);
  if (found.checkpoint) {
    if (found.passed_over) folder.keep_aside_after(&*found.checkpoint);
    folder.point_last_at(*found.checkpoint);
    state = found.checkpoint->state;
    last_checkpoint = found.checkpoint->path;
    notice(fmt::format("resuming after step {} of {} from {}", state.step, schedule.total_steps(),
                       last_checkpoint.string()));
    return;
  }
  if (found.passed_over) {  // a damaged file may have been read in part
    notice("there is no good checkpoint: starting from the beginning");
    folder.keep_aside_after(nullptr);
    module = make_module(recipe, graph, device);
    quantized = make_quantized(recipe, module);
    optimizer = make_optimizer(recipe, module);
    taps = AttentionRecord();
    start_from_init();
  }
}

// Takes images of the training set through the module, which a resumed run does not see again: `pass` gets what takes
// one batch, or returns false. Returns the number of images; nothing if the run is to stop before it has them all.
std::optional<int64_t> TrainingRun::evaluate_some(const std::function<void(const std::function<bool()>&)>& pass) {
  constexpr int64_t kImages = 512;
  const torch::NoGradGuard no_grad;
  const nn::EvaluationScope evaluation(module);
  DeviceBatches batches(*source.train, stream_options(/*train=*/true), device);
  Batch batch;
  int64_t images = 0;
  pass([&] {
    if (images >= kImages || !batches.next(batch)) return false;
    module->forward(batch.images);
    images += batch.images.size(0);
    return true;
  });
  stopped_at_start_ = batches.stopped();
  if (stopped_at_start_) return std::nullopt;
  average = WeightAverage(module, recipe.ema);
  return images;
}

// Of values, before anything is rounded.
void TrainingRun::calibrate_ranges() {
  const auto images = evaluate_some([&](const auto& forward) { quantized->calibrate(forward); });
  if (images) notice(fmt::format("ranges of values are from {} training images", *images));
}

void TrainingRun::give_norms_statistics() {
  if (plain_norms_.empty()) return;
  const auto images = evaluate_some([&](const auto& forward) { give_statistics(module, plain_norms_, forward); });
  if (!images) return;
  notice(fmt::format("{} batch norms had no statistics, such as '{}': they have those of {} training images",
                     plain_norms_.size(), plain_norms_.front(), *images));
}

// From here on all ranks stand where rank 0 does.
void TrainingRun::join_ranks() {
  if (share.group() == nullptr) return;
  share.check_data(source.train->size(), source.test->size());
  share.group()->start(device);
  stopped_at_start_ = share.any(stopped_at_start_);
  state = share.spread(state);
  for (const auto& tensors : {nn::state_of(*module), optimizer->state(), average.state()}) share.spread(tensors);
  if (recipe.sync_norm && share.several()) synchronise_norms(module, *share.group());
}

// Once all ranks stand where rank 0 does, which reads it.
void TrainingRun::find_teacher() {
  if (recipe.teacher.empty() || finished()) return;
  LoadedTeacher loaded;
  if (files != nullptr) {
    loaded = load_teacher(recipe, graph, source, events.on_notice);
    check_same_teacher(loaded, state, recipe);
    state.teacher = loaded.checksum;
  }
  teacher = share.spread_network(loaded.module, device);
  teacher->eval();
}

}  // namespace onetap
