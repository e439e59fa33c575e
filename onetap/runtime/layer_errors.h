// How far an int8 network's values are from those of the floats that it was made of, step by step.
#pragma once

#include "onetap/runtime/int8_reference.h"
#include "onetap/tap/tap_net.h"

#include <mutex>
#include <string>
#include <vector>

namespace onetap {

// Roots of mean squares, of the differences and of the values in floats, over all images and elements.
struct LayerError {
  const Node* node = nullptr;  // of the int8 network
  double alone = 0;            // the step given the floats' values, rounded to bytes: what it adds itself
  double so_far = 0;           // the step behind all others in int8
};

class LayerErrors {
 public:
  // Both must outlive it. `bytes` was made of `floats` by quantize_net().
  LayerErrors(const TapNet& floats, const TapNet& bytes, int64_t memory_limit = 0);

  // Several threads may call it at once.
  void add(const float* image);

  // Per step of the plan, in parts of the floats' values: 0.01 is one percent.
  std::vector<LayerError> errors() const;

 private:
  struct Sums {
    double alone = 0, so_far = 0, size = 0;  // squares
  };

  const TapNet& floats_;
  const int64_t memory_limit_;
  const Int8Reference reference_;
  mutable std::mutex mutex_;
  std::vector<Sums> sums_;  // per step
};

}  // namespace onetap
