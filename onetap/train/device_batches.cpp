#include "onetap/train/device_batches.h"

namespace onetap {

DeviceBatches::DeviceBatches(const Dataset& data, StreamOptions options, torch::Device device)
    : device_(device), view_(options.view), ops_(device.is_cuda() ? fused::cuda_ops() : nullptr) {
  options.packed = options.pinned = ops_ != nullptr;
  auto stream = std::make_unique<BatchStream>(data, options);
  if (ops_ != nullptr) {
    feed_ = std::make_unique<fused::Feed>(std::move(stream), device);
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
  fused::PackedBatch packed;
  if (!feed_->next(packed)) return false;
  batch.images = torch::empty({packed.images(), 3, view_.size, view_.size},
                              torch::TensorOptions(torch::kFloat32).device(device_), torch::MemoryFormat::ChannelsLast);
  batch.labels = packed.labels;
  ops_->crop(packed, view_, batch.images);
  return true;
}

double DeviceBatches::waited() const {
  return feed_ != nullptr ? feed_->waited() : stream_->waited();
}

}  // namespace onetap
