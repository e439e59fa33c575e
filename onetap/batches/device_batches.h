// The batches of a pass, finished and on the device that works on them.
#pragma once

#include "onetap/batches/feed.h"

#include <memory>

namespace onetap {

// Where crops_on_gpu(), a GPU crops, flips and normalises what workers decode, and the next batch is copied while the
// GPU works on the present one. Elsewhere workers do all of it.
class DeviceBatches {
 public:
  DeviceBatches(const Dataset& data, StreamOptions options, torch::Device device);

  // Images and labels on the device, images in channels-last memory; false at the end and where the pass was stopped.
  bool next(Batch& batch);
  // Whether options.stopped ended the pass.
  bool stopped() const;
  // Seconds in which the device had no batch to work on.
  double waited() const;

 private:
  torch::Device device_;
  View view_;
  // One of them: a stream of finished batches, or packed ones on their way to the GPU.
  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<Feed> feed_;
};

}  // namespace onetap
