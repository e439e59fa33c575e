#include "onetap/batches/device_batches.h"

#include "onetap/batches/crop.h"

namespace onetap {

DeviceBatches::DeviceBatches(const Dataset& data, StreamOptions options, torch::Device device)
    : device_(device), view_(options.view) {
  const bool packed = device.is_cuda() && crops_on_gpu();
  options.packed = options.pinned = packed;
  auto stream = std::make_unique<BatchStream>(data, options);
  if (packed) {
    feed_ = std::make_unique<Feed>(std::move(stream), device);
  } else {
    stream_ = std::move(stream);
  }
}

bool DeviceBatches::next(Batch& batch) {
  if (stream_ != nullptr) {
    if (!stream_->next(batch)) return false;
    batch.images = batch.images.to(device_).contiguous(torch::MemoryFormat::ChannelsLast);
    batch.labels = batch.labels.to(device_);
    return true;
  }
  PackedBatch packed;
  if (!feed_->next(packed)) return false;
  batch.images = torch::empty({packed.images(), 3, view_.size, view_.size},
                              torch::TensorOptions(torch::kFloat32).device(device_), torch::MemoryFormat::ChannelsLast);
  batch.labels = packed.labels;
  crop_packed(packed, view_, batch.images);
  return true;
}

bool DeviceBatches::stopped() const {
  return feed_ != nullptr ? feed_->stopped() : stream_->stopped();
}

double DeviceBatches::waited() const {
  return feed_ != nullptr ? feed_->waited() : stream_->waited();
}

}  // namespace onetap
