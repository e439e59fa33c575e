// The batches of a stream on the device that works on them.
#pragma once

#include "onetap/fused/feed.h"
#include "onetap/fused/ops.h"
#include "onetap/train/loader.h"

#include <memory>

namespace onetap {

// On a GPU that has the kernels, workers only decode: crop, flip and normalisation are the GPU's, and the next batch is
// on its way while it works on the present one. Elsewhere workers do it all.
class DeviceBatches {
 public:
  DeviceBatches(const Dataset& data, StreamOptions options, torch::Device device);

  // Images and labels on the device, images in channels-last memory; false at the end.
  bool next(Batch& batch);
  // Seconds that the device had nothing to do for want of a batch.
  double waited() const;

 private:
  torch::Device device_;
  View view_;
  std::unique_ptr<fused::Ops> ops_;  // null: whole batches
  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<fused::Feed> feed_;
};

}  // namespace onetap
