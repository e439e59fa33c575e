// Brings the batches of a stream to a device, the next one while the present one is worked on.
#pragma once

#include "onetap/fused/packed.h"

#include <memory>
#include <optional>

namespace onetap::fused {

class Feed {
 public:
  Feed(std::unique_ptr<PackedStream> stream, torch::Device device);
  ~Feed();

  // The next batch, ready for the device's current stream; false at the end. On a GPU the caller stays at most one
  // batch ahead of the work on those before.
  bool next(PackedBatch& batch);
  // Seconds in which the device had nothing to do, for want of a batch.
  double waited() const { return stream_->waited(); }

 private:
  class Uploads;

  void stage();

  std::unique_ptr<PackedStream> stream_;
  std::unique_ptr<Uploads> uploads_;
  std::optional<PackedBatch> staged_;  // on its way
};

}  // namespace onetap::fused
