// Where the images of fused steps come from: from memory of the device, or from a stream.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/fused/feed.h"
#include "onetap/fused/ops.h"

#include <functional>
#include <memory>

namespace onetap::fused {

// All images of a set as bytes on the device, in order. kData unless they are of the view's size.
AugmentState resident_data(const Dataset& data, const View& view, torch::Device device);

struct SourceOptions {
  int64_t batch_size = 128;
  int64_t channels = 3;  // of the activations, padded
  torch::ScalarType type = torch::kFloat32;
  bool shuffled = false;  // in an order of every epoch's own; else as they are
};

class SampleSource {
 public:
  SampleSource(std::shared_ptr<Ops> ops, const SourceOptions& options) : ops_(std::move(ops)), options_(options) {}
  virtual ~SampleSource() = default;

  virtual int64_t images() const = 0;
  int64_t batch_size() const { return options_.batch_size; }
  // Of a step of the epoch.
  int64_t count(int64_t step) const { return std::min(batch_size(), images() - step * batch_size()); }

  virtual void start_epoch(int64_t epoch, int64_t first);
  // Before each step, and not part of a captured graph: images that have to come from elsewhere come. `mine`: those of
  // the step that will be asked for, a rank's part.
  virtual void prepare(const Portion& /*mine*/) {}
  // Of the step's images.
  virtual Sample sample(const Portion& portion) = 0;
  // Seconds that the device waited in prepare() since the epoch was started.
  virtual double waited() const { return 0; }

  // The clock in it goes on from step to step.
  const AugmentState& state() const { return state_; }

 protected:
  std::shared_ptr<Ops> ops_;
  SourceOptions options_;
  AugmentState state_;
};

// `state` is resident_data() with its augmentation set.
std::unique_ptr<SampleSource> resident_source(std::shared_ptr<Ops> ops, const SourceOptions& options,
                                              const AugmentState& state);

// A pass over the set, from batch `first` of the epoch on.
using OpenStream = std::function<std::unique_ptr<PackedStream>(int64_t epoch, int64_t first)>;

std::unique_ptr<SampleSource> streamed_source(std::shared_ptr<Ops> ops, const SourceOptions& options, int64_t images,
                                              const View& view, torch::Device device, const OpenStream& open);

}  // namespace onetap::fused
