#include "onetap/fused/engine.h"

#include "onetap/fused/autograd_network.h"
#include "onetap/fused/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace onetap::fused {
namespace {

constexpr int64_t kTestBatch = 1000;

torch::Tensor float_row(const std::vector<float>& values) {
  return torch::tensor(at::ArrayRef<float>(values), torch::kFloat32);
}

// A row for each number that a step reads, a column for each step.
torch::Tensor make_tables(const EngineOptions& options) {
  std::vector<torch::Tensor> rows = {float_row(options.learning_rates), float_row(options.temperatures)};
  const auto add_row = [&](float Mix::*number) {
    std::vector<float> values;
    for (const Mix& mix : options.mixes) values.push_back(mix.*number);
    rows.push_back(float_row(values));
  };
  if (!options.mixes.empty()) {
    for (const auto number : {&Mix::share, &Mix::weight, &Mix::top, &Mix::left, &Mix::bottom, &Mix::right}) {
      add_row(number);
    }
  }
  return torch::stack(rows).to(options.device);
}

void wait_for_device(torch::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

std::shared_ptr<Ops> ops_for(torch::Device device) {
  auto ops = device.is_cuda() ? cuda_ops() : nullptr;
  return ops != nullptr ? std::move(ops) : reference_ops();
}

std::unique_ptr<StepNetwork> make_network(const nn::GraphModule& module, const nn::NamedTensors& momenta,
                                          const EngineOptions& options, const std::shared_ptr<Ops>& ops) {
  if (options.steps == Steps::kAutograd) {
    const AutogradOptions autograd{options.type, options.rules, options.update.logit_decay};
    return std::make_unique<AutogradNetwork>(module, momenta, autograd, ops);
  }
  NetworkOptions network;
  network.type = options.type;
  network.pad_channels = options.device.is_cuda();
  network.rules = options.rules;
  return std::make_unique<Network>(module, momenta, network, ops);
}

}  // namespace

bool is_streamed(const DataSource& source, const EngineOptions& options) {
  return source.image_size != options.view.size || options.augment.kind == Augment::kResizedCrop;
}

std::string engine_obstacle(const Graph& graph) {
  return make_plan(graph).obstacle;
}

Engine::Engine(nn::GraphModule module, const nn::NamedTensors& momenta, const DataSource& source,
               const EngineOptions& options)
    : options_(options),
      ops_(ops_for(options.device)),
      module_(std::move(module)),
      momenta_(momenta),
      network_(make_network(module_, momenta, options, ops_)),
      train_(make_source(source, true)),
      test_(make_source(source, false)) {
  const auto on_device = torch::TensorOptions().device(options.device);
  tables_ = make_tables(options);
  counter_ = torch::zeros({1}, on_device.dtype(torch::kInt64));
  values_.rates = torch::zeros({tables_.size(0)}, on_device.dtype(torch::kFloat32));
  loss_.sums = torch::zeros({2}, on_device.dtype(torch::kFloat64));
  static_cast<nn::Objective&>(loss_) = options.objective;
  if (options.teacher) {
    teacher_ = std::make_unique<Teacher>(options.teacher, NetworkOptions{options.type, options.device.is_cuda()}, ops_);
  }
  if (options.ranks != nullptr) {
    part_ = options.ranks->part();
    reduce_ = std::make_unique<GradientSum>(*options.ranks, network_->gradient_sizes(), options.device);
  }
}

Engine::~Engine() = default;

std::unique_ptr<SampleSource> Engine::make_source(const DataSource& source, bool train) const {
  const Dataset& data = train ? *source.train : *source.test;
  SourceOptions to = {options_.batch_size, network_->input_channels(), options_.type, /*shuffled=*/train};
  if (is_streamed(source, options_)) {
    StreamOptions stream;
    stream.view = options_.view;
    stream.workers = options_.workers;
    stream.train = train;
    stream.augment = options_.augment;
    stream.seed = options_.seed;
    if (options_.ranks != nullptr) stream.part = options_.ranks->part();
    stream.stopped = options_.stopped;
    return streamed_source(to, data, stream, options_.device);
  }
  AugmentState state = resident_data(data, options_.view, options_.device);
  if (train) {
    state.seed = options_.seed;
    state.augment = options_.augment.kind == Augment::kPadCrop;
    state.pad = options_.augment.pad;
    state.flip = options_.augment.flip;
    state.cutout = options_.augment.cutout;
    state.jitter = options_.augment.jitter;
  } else {
    to.batch_size = kTestBatch;
  }
  return resident_source(ops_, to, state);
}

void Engine::start_epoch(int64_t epoch, int64_t first, int64_t steps_done, const Sums& so_far) {
  train_->start_epoch(epoch, first);
  counter_.fill_(steps_done);
  values_.rates.copy_(tables_.select(1, steps_done));
  loss_.sums.zero_();
  // On one rank alone, for all are added up.
  if (part_.index == 0) {
    loss_.sums.copy_(torch::tensor({so_far.loss, static_cast<double>(so_far.right)}, torch::kFloat64));
  }
  at_ = first;
  steps_done_ = steps_done;
  images_ = so_far.images;
}

Sample Engine::mixed_sample(const Portion& mine, nn::Targets& targets) {
  Sample sample = train_->sample(mine);
  targets.labels = sample.labels;
  if (!options_.mixes.empty()) {
    sample.images = ops_->mix(sample.images, values_);
    targets.others = sample.labels.flip(0);
    targets.share = values_.mix().select(0, 0);
  }
  return sample;
}

void Engine::step(int64_t count, Phase last) {
  const bool alone = reduce_ == nullptr;  // no other rank's gradients to wait for
  const Portion mine = portion_of(count, part_.index, part_.of);
  nn::Targets all{torch::Tensor()};
  const Sample sample = mixed_sample(mine, all);
  for (int64_t part = 0; part < options_.accumulate; ++part) {
    const Portion portion = portion_of(mine.count, part, options_.accumulate);
    if (portion.count == 0) continue;
    const auto images = sample.images.narrow(0, portion.first, portion.count);
    if (portion.first == 0 && last >= Phase::kPack) network_->pack(values_);
    if (last < Phase::kForward) continue;
    const auto logits = network_->forward(images);
    if (last < Phase::kLoss) continue;
    nn::Targets targets = all.part(portion);
    if (teacher_) targets.teacher = teacher_->logits(images);
    const auto dlogits = ops_->loss(loss_, logits, targets, count);
    if (last < Phase::kBackward) continue;
    const bool add = portion.first > 0;
    const bool complete = part + 1 == options_.accumulate;
    if (!alone && complete) {
      network_->backward_over_ranks(dlogits, add, *reduce_);
    } else if (complete && last == Phase::kUpdate) {
      network_->backward_and_update(dlogits, add, values_, options_.update);
    } else {
      network_->backward(dlogits, add);
    }
  }
  if (last < Phase::kUpdate) return;
  if (!alone) network_->update(values_, options_.update);
  ops_->advance(train_->state(), counter_, tables_, values_);
}

void Engine::without_trace(const std::function<void()>& work) {
  nn::NamedTensors all = nn::state_of(*module_);
  all.insert(all.end(), momenta_.begin(), momenta_.end());
  for (const auto& tensor : {train_->state().clock, counter_, values_.rates, loss_.sums}) all.emplace_back("", tensor);
  std::vector<torch::Tensor> before;
  for (const auto& [name, tensor] : all) before.push_back(tensor.detach().clone());
  work();
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < all.size(); ++i) all[i].second.detach().copy_(before[i]);
}

void Engine::rewind() {
  train_->state().clock.zero_();
  counter_.zero_();
}

std::function<void()> Engine::replayable(const std::function<void()>& work) {
  const Repeatable repeatable{[this] { rewind(); }, work};
  if (options_.capture_with) return options_.capture_with(repeatable);
  return options_.device.is_cuda() && options_.capture ? capture_graph(repeatable) : work;
}

bool Engine::replay(int64_t count) {
  if (!train_->prepare(portion_of(count, part_.index, part_.of))) return false;
  auto& graph = graphs_[count];
  if (!graph) {
    without_trace([&] { graph = replayable([this, count] { step(count); }); });
  }
  graph();
  return true;
}

double Engine::time(const std::function<void()>& work, int64_t repeats) {
  repeats = std::max<int64_t>(1, repeats);
  // Every step advances the clock: so many fit the epoch, and the schedule. A set of less than a batch has one step.
  const int64_t whole_batches = std::max<int64_t>(1, train_->images() / options_.batch_size);
  const int64_t steps = std::min(whole_batches, tables_.size(1) - 1);
  double seconds = 0;
  without_trace([&] {
    const auto run = replayable(work);
    using Clock = std::chrono::steady_clock;
    const auto seconds_since = [](Clock::time_point start) {
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    rewind();
    run();
    wait_for_device(options_.device);
    const auto trial = Clock::now();
    rewind();
    run();
    wait_for_device(options_.device);
    // Fewer of slow steps, as on a CPU.
    const double fitting = options_.timing_seconds / std::max(1e-9, seconds_since(trial));
    repeats = std::clamp<int64_t>(static_cast<int64_t>(fitting), 1, repeats);
    rewind();
    wait_for_device(options_.device);
    const auto start = Clock::now();
    for (int64_t i = 0; i < repeats; ++i) {
      if (i > 0 && i % steps == 0) rewind();
      run();
    }
    wait_for_device(options_.device);
    seconds = seconds_since(start);
  });
  return seconds / static_cast<double>(repeats);
}

double Engine::time_step(Phase last, int64_t repeats) {
  return time([this, last] { step(first_batch(), last); }, repeats);
}

double Engine::time_convolutions(int64_t repeats) {
  const auto all = network_->lone_convolutions(first_batch());
  return time(
      [&] {
        for (const LoneConvolution& one : all) one.run();
      },
      repeats);
}

int64_t Engine::run(int64_t steps, const std::function<void(int64_t)>& after_step) {
  for (int64_t i = 0; i < steps; ++i, ++at_) {
    const int64_t count = train_->count(at_);
    if (!replay(count)) return i;
    images_ += count;
    ++steps_done_;
    if (after_step) after_step(steps_done_);
  }
  return steps;
}

Sums Engine::sums() const {
  auto host = loss_.sums.cpu();
  if (options_.ranks != nullptr) {
    const auto all = loss_.sums.clone();
    options_.ranks->sum(all);
    host = all.cpu();
  }
  return {host[0].item<double>(), static_cast<int64_t>(host[1].item<double>()), images_};
}

std::optional<std::vector<Sums>> Engine::test(const std::vector<nn::AttentionMode>& modes,
                                              const std::function<bool(int64_t)>& progress) {
  // All modes on each batch: a streamed one is decoded once.
  std::vector<LossState> losses(modes.size());
  for (LossState& loss : losses) loss.sums = torch::zeros_like(loss_.sums);
  test_->start_epoch(0, 0);
  int64_t images = 0;
  bool stopped = false;
  for (int64_t i = part_.index; i * test_->batch_size() < test_->images() && !stopped; i += part_.of) {
    const Portion whole{0, test_->count(i)};
    test_->state().clock[0] = i;
    stopped = !test_->prepare(whole);
    if (stopped) break;
    const Sample sample = test_->sample(whole);
    for (size_t m = 0; m < modes.size(); ++m) {
      const nn::ModeGuard guard(module_, modes[m]);
      if (images == 0 || modes.size() > 1) network_->pack_for_inference();
      ops_->loss(losses[m], network_->infer(sample.images), sample.labels, whole.count);
    }
    images += whole.count;
    stopped = progress && !progress(images);
  }
  std::vector<double> all = {static_cast<double>(images), stopped ? 1.0 : 0.0};
  for (const LossState& loss : losses) {
    const auto host = loss.sums.cpu();
    all.insert(all.end(), {host[0].item<double>(), host[1].item<double>()});
  }
  if (options_.ranks != nullptr) all = options_.ranks->sum(all);
  if (all[1] > 0) return std::nullopt;
  std::vector<Sums> sums;
  for (size_t m = 0; m < modes.size(); ++m) {
    sums.push_back({all[2 + 2 * m], static_cast<int64_t>(all[3 + 2 * m]), static_cast<int64_t>(all[0])});
  }
  return sums;
}

}  // namespace onetap::fused
