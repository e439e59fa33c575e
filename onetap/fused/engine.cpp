#include "onetap/fused/engine.h"

#include "onetap/base/fail.h"
#include "onetap/base/random.h"
#include "onetap/fused/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace onetap::fused {
namespace {

constexpr int64_t kTestBatch = 1000;

torch::Tensor float_row(const std::vector<float>& values) {
  return torch::tensor(at::ArrayRef<float>(values), torch::kFloat32);
}

void wait_for_device(torch::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

std::shared_ptr<Ops> ops_for(torch::Device device) {
  auto ops = device.is_cuda() ? cuda_ops() : nullptr;
  return ops != nullptr ? std::move(ops) : reference_ops();
}

}  // namespace

AugmentState resident_data(const Dataset& data, const View& view, torch::Device device) {
  AugmentState state;
  state.images = torch::empty({data.size(), 3, view.size, view.size}, torch::kUInt8);
  state.labels = torch::empty({data.size()}, torch::kInt64);
  auto* bytes = state.images.data_ptr<uint8_t>();
  auto* labels = state.labels.data_ptr<int64_t>();
  Image image;
  for (int64_t i = 0; i < data.size(); ++i) {
    data.read(i, image);
    if (static_cast<int64_t>(image.pixels.size()) != view.floats()) {
      fail_data("[fused] {}: expected 3x{}x{}, got {}x{}x{}", data.describe(i), view.size, view.size, image.channels,
                image.height, image.width);
    }
    std::copy(image.pixels.begin(), image.pixels.end(), bytes + i * view.floats());
    labels[i] = data.label(i);
  }
  state.images = state.images.to(device);
  state.labels = state.labels.to(device);
  state.order = torch::arange(data.size(), torch::kInt32).to(device);
  state.clock = torch::zeros({2}, torch::TensorOptions(torch::kInt64).device(device));
  for (size_t c = 0; c < 3; ++c) {
    const Scale scale = scale_of(view.normalisation, c);
    state.multiply.push_back(scale.multiply);
    state.add.push_back(scale.add);
  }
  return state;
}

std::string engine_obstacle(const Graph& graph, const DataSource& source, const EngineOptions& options) {
  const std::string obstacle = make_plan(graph).obstacle;
  if (!obstacle.empty()) return obstacle;
  if (source.image_size != options.view.size) return "images are not all of the network's size";
  if (options.augment.kind == Augment::kResizedCrop) return "resized-crop augmentation needs the CPU";
  return "";
}

Engine::Engine(nn::GraphModule module, const nn::NamedTensors& momenta, const DataSource& source,
               const EngineOptions& options)
    : options_(options),
      ops_(ops_for(options.device)),
      module_(std::move(module)),
      momenta_(momenta),
      network_(module_, momenta, {options.type, options.device.is_cuda()}, ops_),
      train_(resident_data(*source.train, options.view, options.device)),
      test_(resident_data(*source.test, options.view, options.device)) {
  train_.seed = options.seed;
  train_.augment = options.augment.kind == Augment::kPadCrop;
  train_.pad = options.augment.pad;
  train_.flip = options.augment.flip;
  train_.cutout = options.augment.cutout;
  const auto on_device = torch::TensorOptions().device(options.device);
  tables_ = torch::stack({float_row(options.learning_rates), float_row(options.temperatures)}).to(options.device);
  counter_ = torch::zeros({1}, on_device.dtype(torch::kInt64));
  values_.rates = torch::zeros({2}, on_device.dtype(torch::kFloat32));
  loss_.sums = torch::zeros({2}, on_device.dtype(torch::kFloat64));
  loss_.label_smoothing = options.label_smoothing;
  if (options.ranks != nullptr) {
    part_ = options.ranks->part();
    std::vector<int64_t> sizes;
    for (size_t i = network_.convs().size(); i-- > 0;) sizes.push_back(network_.convs()[i].packed.numel());
    for (const PlainState& state : network_.plain()) sizes.push_back(state.parameter.numel());
    reduce_ = std::make_unique<GradientSum>(*options.ranks, sizes, options.device);
  }
}

Engine::~Engine() = default;

void Engine::start_epoch(int64_t epoch, int64_t first, int64_t steps_done, const Sums& so_far) {
  const auto size = static_cast<uint32_t>(train_.images.size(0));
  const auto order = permutation(size, Random(options_.seed, Purpose::kShuffle, static_cast<uint32_t>(epoch)));
  auto host = torch::empty({static_cast<int64_t>(size)}, torch::kInt32);
  std::copy(order.begin(), order.end(), host.data_ptr<int32_t>());
  train_.order.copy_(host);
  train_.clock.copy_(torch::tensor({first, epoch}, torch::kInt64));
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

void Engine::backward(const torch::Tensor& dlogits, bool add, bool complete) {
  if (!reduce_ || !complete) return network_.backward(dlogits, {add, {}});
  auto& convs = network_.convs();
  auto& plain = network_.plain();
  network_.backward(dlogits, {add, [&](size_t conv) { reduce_->add(convs.size() - 1 - conv, convs[conv].grad); }});
  // A gradient may be longer than its parameter, by padding.
  const auto real = [](const PlainState& state) { return state.grad.flatten().narrow(0, 0, state.parameter.numel()); };
  for (size_t i = 0; i < plain.size(); ++i) reduce_->add(convs.size() + i, real(plain[i]));
  reduce_->finish();
  for (size_t i = 0; i < convs.size(); ++i) {
    convs[i].grad.copy_(reduce_->sum(convs.size() - 1 - i).view(convs[i].grad.sizes()));
  }
  for (size_t i = 0; i < plain.size(); ++i) plain[i].grad = reduce_->sum(convs.size() + i).view_as(plain[i].parameter);
}

void Engine::step(int64_t count, Phase last) {
  const Portion mine = portion_of(count, part_.index, part_.of);
  for (int64_t part = 0; part < options_.accumulate; ++part) {
    const Portion portion = portion_of(mine.count, part, options_.accumulate);
    if (portion.count == 0) continue;
    const SampleRange range{options_.batch_size, mine.first + portion.first, portion.count};
    const Sample sample = ops_->sample(train_, range, network_.input_channels(), options_.type);
    if (portion.first == 0 && last >= Phase::kPack) network_.pack(values_);
    if (last < Phase::kForward) continue;
    const auto logits = network_.forward(sample.images);
    if (last < Phase::kLoss) continue;
    const auto dlogits = ops_->loss(loss_, logits, sample.labels, count);
    if (last < Phase::kBackward) continue;
    backward(dlogits, /*add=*/portion.first > 0, /*complete=*/part + 1 == options_.accumulate);
  }
  if (last < Phase::kUpdate) return;
  network_.update(values_, options_.update);
  ops_->advance(train_, counter_, tables_, values_);
}

void Engine::without_trace(const std::function<void()>& work) {
  nn::NamedTensors all = nn::state_of(*module_);
  all.insert(all.end(), momenta_.begin(), momenta_.end());
  for (const auto& tensor : {train_.clock, counter_, values_.rates, loss_.sums}) all.emplace_back("", tensor);
  std::vector<torch::Tensor> before;
  for (const auto& [name, tensor] : all) before.push_back(tensor.detach().clone());
  work();
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < all.size(); ++i) all[i].second.detach().copy_(before[i]);
}

// To the start, so that steps for trial do not run over the end of the epoch or of the schedule.
void Engine::rewind() {
  train_.clock.zero_();
  counter_.zero_();
}

std::function<void()> Engine::ready(const std::function<void()>& work) {
  return options_.device.is_cuda() && options_.capture ? capture_graph(work) : work;
}

void Engine::replay(int64_t count) {
  auto& graph = graphs_[count];
  if (!graph) {
    without_trace([&] {
      rewind();
      graph = ready([this, count] { step(count); });
    });
  }
  graph();
}

double Engine::time(const std::function<void()>& work, int64_t repeats) {
  // Every run goes on in the epoch; capturing takes some, too.
  const int64_t most = train_.images.size(0) / options_.batch_size - 8;
  repeats = std::max<int64_t>(1, std::min(repeats, most));
  double seconds = 0;
  without_trace([&] {
    rewind();
    const auto run = ready(work);
    run();
    wait_for_device(options_.device);
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < repeats; ++i) run();
    wait_for_device(options_.device);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  return seconds / static_cast<double>(repeats);
}

double Engine::time_step(Phase last, int64_t repeats) {
  return time([this, last] { step(options_.batch_size, last); }, repeats);
}

double Engine::time_convolutions(int64_t repeats) {
  const auto inputs = network_.random_conv_inputs(options_.batch_size);
  return time([&] { network_.convolve_only(inputs); }, repeats);
}

void Engine::run(int64_t steps, const std::function<void(int64_t)>& after_step) {
  const int64_t images = train_.images.size(0);
  for (int64_t i = 0; i < steps; ++i, ++at_) {
    const int64_t count = std::min(options_.batch_size, images - at_ * options_.batch_size);
    replay(count);
    images_ += count;
    ++steps_done_;
    if (after_step) after_step(steps_done_);
  }
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

std::optional<Sums> Engine::test(const std::function<bool(int64_t)>& progress) {
  LossState loss;
  loss.sums = torch::zeros_like(loss_.sums);
  network_.pack_for_inference();
  const int64_t images = test_.images.size(0);
  Sums sums;
  bool stopped = false;
  for (int64_t i = part_.index; i * kTestBatch < images && !stopped; i += part_.of) {
    const int64_t count = std::min(kTestBatch, images - i * kTestBatch);
    test_.clock[0] = i;
    const SampleRange range{kTestBatch, 0, count};
    const Sample sample = ops_->sample(test_, range, network_.input_channels(), options_.type);
    ops_->loss(loss, network_.infer(sample.images), sample.labels, count);
    sums.images += count;
    stopped = progress && !progress(sums.images);
  }
  const auto host = loss.sums.cpu();
  std::vector<double> all = {host[0].item<double>(), host[1].item<double>(), static_cast<double>(sums.images),
                             stopped ? 1.0 : 0.0};
  if (options_.ranks != nullptr) all = options_.ranks->sum(all);
  if (all[3] > 0) return std::nullopt;
  return Sums{all[0], static_cast<int64_t>(all[1]), static_cast<int64_t>(all[2])};
}

}  // namespace onetap::fused
