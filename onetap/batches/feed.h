// Copies the packed batches of a stream to a device, the next one while the device works on the present one.
#pragma once

#include "onetap/batches/batch_stream.h"

#include <memory>
#include <optional>

namespace onetap {

class Feed {
 public:
  // `stream` is one that packs.
  Feed(std::unique_ptr<BatchStream> stream, torch::Device device);
  ~Feed();

  // The next batch, ready for the device's current stream; false at the end and where the stream was stopped. On a GPU
  // the caller stays at most one batch ahead of the work on those before.
  bool next(PackedBatch& batch);
  bool stopped() const { return stream_->stopped(); }
  // Seconds in which the device had no batch to work on.
  double waited() const { return stream_->waited(); }

 private:
  class Uploads;

  void stage();

  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<Uploads> uploads_;
  std::optional<PackedBatch> staged_;  // on its way
};

}  // namespace onetap
