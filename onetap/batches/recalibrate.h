// Recomputes batch norm's running statistics through the hard network.
//
// Training leaves averages over the soft network's last steps. A slice that had not yet settled on one tap, or a
// network hardened early, gives its channel another mean and variance. Training is not affected, since it normalises
// every batch by its own statistics, but the frozen network computes with those averages.
#pragma once

#include "onetap/batches/batch_stream.h"
#include "onetap/nn/graph_module.h"

#include <functional>
#include <optional>

namespace onetap {

struct RecalibrateOptions {
  StreamOptions stream;                          // of training: shuffled and augmented
  int64_t images = 0;                            // at least so many, in whole batches; at most one pass
  torch::Device device = torch::kCPU;            // the module's
  std::function<bool(int64_t images)> progress;  // if given, called after each batch; false ends it
};

// Replaces the running means and variances by their averages over batches of training images, through the hard network.
// Returns the number of images used, or nothing if `progress` or the stream ended it: then the statistics are those of
// a few batches. The module is left in training mode and soft.
std::optional<int64_t> recalibrate(nn::GraphModule& module, const Dataset& train, const RecalibrateOptions& options);

}  // namespace onetap
