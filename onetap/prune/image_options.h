// What scores that look at images are given.
#pragma once

#include "onetap/batches/batch_stream.h"

#include <functional>

namespace onetap {

struct ImageScoreOptions {
  StreamOptions stream;  // of training: shuffled by its seed
  int64_t images = 0;    // at least so many, in whole batches, at most one pass; 0: all
  torch::Device device = torch::kCPU;
  // Called after every batch with what is being done and the images so far; returning false stops.
  std::function<bool(const char* stage, int64_t images)> progress;
};

}  // namespace onetap
