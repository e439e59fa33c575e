// Where the images of fused steps come from: from memory of the device, or from a stream.
#pragma once

#include "onetap/batches/batch_stream.h"
#include "onetap/data/dataset.h"
#include "onetap/fused/ops.h"

#include <algorithm>
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
  explicit SampleSource(const SourceOptions& options) : options_(options) {}
  virtual ~SampleSource() = default;

  virtual int64_t images() const = 0;
  int64_t batch_size() const { return options_.batch_size; }
  // Of a step of the epoch.
  int64_t count(int64_t step) const { return std::min(batch_size(), images() - step * batch_size()); }

  virtual void start_epoch(int64_t epoch, int64_t first);
  // Before each step, and not part of a captured graph: fetches images that are not on the device. `mine` are those of
  // the step that this rank has. False if the stream was stopped (StreamOptions::stopped) instead.
  virtual bool prepare(const Portion& /*mine*/) { return true; }
  // Of the step's images.
  virtual Sample sample(const Portion& portion) = 0;
  // Seconds that the device waited in prepare() since the epoch was started.
  virtual double waited() const { return 0; }

  // The clock in it goes on from step to step.
  const AugmentState& state() const { return state_; }

 protected:
  SourceOptions options_;
  AugmentState state_;
};

// `state` is resident_data() with its augmentation set.
std::unique_ptr<SampleSource> resident_source(std::shared_ptr<Ops> ops, const SourceOptions& options,
                                              const AugmentState& state);

// Every epoch is a pass of packed batches by `stream`, which says all but the epoch and the first batch.
std::unique_ptr<SampleSource> streamed_source(const SourceOptions& options, const Dataset& data,
                                              const StreamOptions& stream, torch::Device device);

}  // namespace onetap::fused
