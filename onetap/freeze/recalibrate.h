// Batch norm's statistics taken anew, with the taps that will be kept.
//
// Training leaves averages over the soft network's last steps. A slice that still wavered between two taps then, or a
// network hardened early, gives its channel another mean and variance; training never notices, since there every batch
// is normalised by itself, but the frozen network computes with those averages.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/train/loader.h"

#include <functional>

namespace onetap {

struct RecalibrateOptions {
  StreamOptions stream;  // of training: shuffled and augmented
  int64_t images = 0;    // at least so many, in whole batches; at most one pass
  std::function<void(int64_t images)> progress;
};

// Replaces the running means and variances by their averages over batches of training images, through the hard network.
// The images it took. The module is left in training mode and soft.
int64_t recalibrate(nn::GraphModule& module, const Dataset& train, const RecalibrateOptions& options);

}  // namespace onetap
