// Batches of images of any sizes, as bytes: crop_packed() crops, flips and normalises them on their device.
#pragma once

#include "onetap/batches/crop_entry.h"
#include "onetap/data/transform.h"
#include "onetap/nn/torch.h"

#include <vector>

namespace onetap {

struct PackedBatch {
  torch::Tensor bytes;    // the planes of all images, one image after another
  torch::Tensor entries;  // [N, sizeof(CropEntry)] bytes
  torch::Tensor labels;   // [N] int64

  int64_t images() const { return labels.size(0); }
  PackedBatch to(torch::Device device) const;
};

// Makes a packed batch, image by image.
class Packer {
 public:
  // `crop` is in the image's pixels. kFailure unless it has three planes.
  void add(const Image& image, const Crop& crop, int64_t label);
  // `pinned`: in page-locked memory, which a GPU copies without the CPU.
  PackedBatch pack(bool pinned) const;

 private:
  std::vector<uint8_t> bytes_;
  std::vector<CropEntry> entries_;
  std::vector<int64_t> labels_;
};

}  // namespace onetap
