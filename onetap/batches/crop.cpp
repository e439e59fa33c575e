#include "onetap/batches/crop.h"

namespace onetap {
namespace {

Crop crop_of(const CropEntry& entry) {
  return {{entry.top, entry.left, entry.box_height, entry.box_width},
          entry.flip != 0,
          entry.resize != 0,
          {entry.cut_top, entry.cut_left, entry.cut_side},
          {entry.contrast, entry.saturation, entry.brightness}};
}

void crop_on_host(const PackedBatch& batch, const View& view, const torch::Tensor& out) {
  const PackedBatch host = batch.to(torch::kCPU);
  const auto* entries = reinterpret_cast<const CropEntry*>(host.entries.data_ptr<uint8_t>());
  auto views = torch::empty({batch.images(), 3, view.size, view.size}, torch::kFloat32);
  Image image;
  for (int64_t n = 0; n < batch.images(); ++n) {
    const CropEntry& entry = entries[n];
    const uint8_t* planes = host.bytes.data_ptr<uint8_t>() + entry.offset;
    image.channels = 3;
    image.height = entry.height;
    image.width = entry.width;
    image.pixels.assign(planes, planes + int64_t{3} * entry.height * entry.width);
    crop_view(image, view, crop_of(entry), views.data_ptr<float>() + n * view.floats());
  }
  out.zero_();
  out.narrow(1, 0, 3).copy_(views);
}

}  // namespace

void crop_packed(const PackedBatch& batch, const View& view, const torch::Tensor& out) {
  out.is_cuda() && crops_on_gpu() ? detail::crop_on_gpu(batch, view, out) : crop_on_host(batch, view, out);
}

}  // namespace onetap
