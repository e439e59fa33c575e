#include "onetap/fused/source.h"

#include "onetap/base/fail.h"
#include "onetap/base/random.h"
#include "onetap/batches/crop.h"
#include "onetap/batches/feed.h"

#include <algorithm>
#include <optional>

namespace onetap::fused {
namespace {

class ResidentSource : public SampleSource {
 public:
  ResidentSource(std::shared_ptr<Ops> ops, const SourceOptions& options, const AugmentState& state)
      : SampleSource(options), ops_(std::move(ops)) {
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

 private:
  std::shared_ptr<Ops> ops_;
};

class StreamedSource : public SampleSource {
 public:
  StreamedSource(const SourceOptions& options, const Dataset& data, const StreamOptions& stream, torch::Device device)
      : SampleSource(options), data_(data), stream_(stream), device_(device) {
    stream_.batch_size = options.batch_size;
    stream_.packed = true;
    stream_.pinned = device.is_cuda();
    const int64_t size = stream.view.size;
    const auto on_device = torch::TensorOptions().device(device);
    state_.clock = torch::zeros({2}, on_device.dtype(torch::kInt64));
    // In one place, for a captured graph reads it there.
    batch_.images = torch::zeros({options.batch_size, options.channels, size, size}, on_device.dtype(options.type))
                        .contiguous(torch::MemoryFormat::ChannelsLast);
    batch_.labels = torch::zeros({options.batch_size}, on_device.dtype(torch::kInt64));
  }

  int64_t images() const override { return data_.size(); }

  void start_epoch(int64_t epoch, int64_t first) override {
    SampleSource::start_epoch(epoch, first);
    feed_.reset();  // two at a time would prepare twice as much ahead
    stream_.epoch = epoch;
    stream_.first_batch = first;
    feed_.emplace(std::make_unique<BatchStream>(data_, stream_), device_);
  }

  bool prepare(const Portion& mine) override {
    PackedBatch packed;
    const bool came = feed_ && feed_->next(packed);
    if (!came && feed_ && feed_->stopped()) return false;
    if (!came || packed.images() != mine.count) {
      fail("[fused] expected a batch of {} images from the stream, got {}", mine.count,
           packed.labels.defined() ? packed.images() : 0);
    }
    const Sample to = sample(mine);
    to.labels.copy_(packed.labels);
    crop_packed(packed, stream_.view, to.images);
    return true;
  }

  Sample sample(const Portion& portion) override {
    return {batch_.images.narrow(0, portion.first, portion.count),
            batch_.labels.narrow(0, portion.first, portion.count)};
  }

  double waited() const override { return feed_ ? feed_->waited() : 0; }

 private:
  const Dataset& data_;
  StreamOptions stream_;
  torch::Device device_;
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

std::unique_ptr<SampleSource> streamed_source(const SourceOptions& options, const Dataset& data,
                                              const StreamOptions& stream, torch::Device device) {
  return std::make_unique<StreamedSource>(options, data, stream, device);
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
