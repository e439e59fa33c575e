#include "onetap/batches/packed.h"

#include "onetap/base/fail.h"

#include <cstring>

namespace onetap {
namespace {

template <typename T>
torch::Tensor host_copy(const std::vector<T>& values, at::IntArrayRef shape, torch::ScalarType type, bool pinned) {
  auto tensor = torch::empty(shape, torch::TensorOptions(type).pinned_memory(pinned));
  if (!values.empty()) std::memcpy(tensor.data_ptr(), values.data(), values.size() * sizeof(T));
  return tensor;
}

}  // namespace

PackedBatch PackedBatch::to(torch::Device device) const {
  const auto moved = [&](const torch::Tensor& tensor) { return tensor.to(device, /*non_blocking=*/true); };
  return {moved(bytes), moved(entries), moved(labels)};
}

void Packer::add(const Image& image, const Crop& crop, int64_t label) {
  if (image.channels != 3) fail("[batches] expected 3 channels, got {}", image.channels);
  CropEntry entry;
  entry.offset = static_cast<int64_t>(bytes_.size());
  entry.height = static_cast<int32_t>(image.height);
  entry.width = static_cast<int32_t>(image.width);
  entry.top = crop.box.top;
  entry.left = crop.box.left;
  entry.box_height = crop.box.height;
  entry.box_width = crop.box.width;
  entry.flip = crop.flip ? 1 : 0;
  entry.resize = crop.resize ? 1 : 0;
  entry.cut_top = static_cast<int32_t>(crop.cutout.top);
  entry.cut_left = static_cast<int32_t>(crop.cutout.left);
  entry.cut_side = static_cast<int32_t>(crop.cutout.side);
  entry.contrast = crop.jitter.contrast;
  entry.saturation = crop.jitter.saturation;
  entry.brightness = crop.jitter.brightness;
  bytes_.insert(bytes_.end(), image.pixels.begin(), image.pixels.end());
  entries_.push_back(entry);
  labels_.push_back(label);
}

PackedBatch Packer::pack(bool pinned) const {
  const auto count = static_cast<int64_t>(labels_.size()), size = static_cast<int64_t>(sizeof(CropEntry));
  return {host_copy(bytes_, {static_cast<int64_t>(bytes_.size())}, torch::kUInt8, pinned),
          host_copy(entries_, {count, size}, torch::kUInt8, pinned),
          host_copy(labels_, {count}, torch::kInt64, pinned)};
}

}  // namespace onetap
