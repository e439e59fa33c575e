// Batches of images of any sizes, as bytes: for a device that crops, flips and normalises them itself.
#pragma once

#include "onetap/data/transform.h"
#include "onetap/fused/crop_entry.h"
#include "onetap/nn/torch.h"

#include <vector>

namespace onetap::fused {

struct PackedBatch {
  torch::Tensor bytes;    // the planes of all images, one image after another
  torch::Tensor entries;  // [N, sizeof(CropEntry)] bytes
  torch::Tensor labels;   // [N] int64

  int64_t images() const { return labels.size(0); }
  PackedBatch to(torch::Device device) const;
};

// What to put in, image by image.
class Packer {
 public:
  // `crop` is in the image's pixels. kFailure unless it has three planes.
  void add(const Image& image, const Crop& crop, int64_t label);
  // `pinned`: in memory that a GPU can fetch by itself.
  PackedBatch pack(bool pinned) const;

 private:
  std::vector<uint8_t> bytes_;
  std::vector<CropEntry> entries_;
  std::vector<int64_t> labels_;
};

// A pass over a data set in packed batches, which others prepare ahead.
class PackedStream {
 public:
  virtual ~PackedStream() = default;
  // Whether next() would return at once.
  virtual bool ready() = 0;
  // The next batch, on the host, or false at the end.
  virtual bool next(PackedBatch& batch) = 0;
  // Seconds that next() had to wait, in all.
  virtual double waited() const = 0;
};

}  // namespace onetap::fused
