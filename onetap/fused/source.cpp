#include "onetap/fused/source.h"

#include "onetap/base/fail.h"
#include "onetap/base/random.h"

#include <algorithm>
#include <optional>

namespace onetap::fused {
namespace {

class ResidentSource : public SampleSource {
 public:
  ResidentSource(std::shared_ptr<Ops> ops, const SourceOptions& options, const AugmentState& state)
      : SampleSource(std::move(ops), options) {
    state_ = state;
  }

  int64_t images() const override { return state_.images.size(0); }

  void start_epoch(int64_t epoch, int64_t first) override {
    SampleSource::start_epoch(epoch, first);
    if (!options_.shuffled) return;
    const auto size = static_cast<uint32_t>(images());
    const auto order = permutation(size, Random(state_.seed, Purpose::kShuffle, static_cast<uint32_t>(epoch)));
    auto host = torch::empty({images()}, torch::kInt32);
    std::copy(order.begin(), order.end(), host.data_ptr<int32_t>());
    state_.order.copy_(host);
  }

  Sample sample(const Portion& portion) override {
    return ops_->sample(state_, {options_.batch_size, portion.first, portion.count}, options_.channels, options_.type);
  }
};

class StreamedSource : public SampleSource {
 public:
  StreamedSource(std::shared_ptr<Ops> ops, const SourceOptions& options, int64_t images, const View& view,
                 torch::Device device, OpenStream open)
      : SampleSource(std::move(ops), options), images_(images), view_(view), device_(device), open_(std::move(open)) {
    const auto on_device = torch::TensorOptions().device(device);
    state_.clock = torch::zeros({2}, on_device.dtype(torch::kInt64));
    // In one place, for a captured graph reads it there.
    batch_.images =
        torch::zeros({options.batch_size, options.channels, view.size, view.size}, on_device.dtype(options.type))
            .contiguous(torch::MemoryFormat::ChannelsLast);
    batch_.labels = torch::zeros({options.batch_size}, on_device.dtype(torch::kInt64));
  }

  int64_t images() const override { return images_; }

  void start_epoch(int64_t epoch, int64_t first) override {
    SampleSource::start_epoch(epoch, first);
    feed_.reset();  // two at a time would prepare twice as much ahead
    feed_.emplace(open_(epoch, first), device_);
  }

  void prepare(const Portion& mine) override {
    PackedBatch packed;
    if (!feed_ || !feed_->next(packed) || packed.images() != mine.count) {
      fail("[fused] expected a batch of {} images from the stream, got {}", mine.count,
           packed.labels.defined() ? packed.images() : 0);
    }
    const Sample to = sample(mine);
    to.labels.copy_(packed.labels);
    ops_->crop(packed, view_, to.images);
  }

  Sample sample(const Portion& portion) override {
    return {batch_.images.narrow(0, portion.first, portion.count),
            batch_.labels.narrow(0, portion.first, portion.count)};
  }

  double waited() const override { return feed_ ? feed_->waited() : 0; }

 private:
  int64_t images_;
  View view_;
  torch::Device device_;
  OpenStream open_;
  Sample batch_;  // with places for the images of all ranks
  std::optional<Feed> feed_;
};

}  // namespace

void SampleSource::start_epoch(int64_t epoch, int64_t first) {
  state_.clock.copy_(torch::tensor({first, epoch}, torch::kInt64));
}

std::unique_ptr<SampleSource> resident_source(std::shared_ptr<Ops> ops, const SourceOptions& options,
                                              const AugmentState& state) {
  return std::make_unique<ResidentSource>(std::move(ops), options, state);
}

std::unique_ptr<SampleSource> streamed_source(std::shared_ptr<Ops> ops, const SourceOptions& options, int64_t images,
                                              const View& view, torch::Device device, const OpenStream& open) {
  return std::make_unique<StreamedSource>(std::move(ops), options, images, view, device, open);
}

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

}  // namespace onetap::fused
