// A module that computes as its frozen network will in int8, and learns through the rounding.
//
// Layers are in their hard form, batch norms go by their running statistics, weights are rounded as the frozen ones
// will be (batch norm folded in), and values where the frozen network rounds them. Gradients pass the rounding as they
// are.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/train/int8_places.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace onetap {

class QuantizedTraining {
 public:
  // The name of the tensor that a module has from then on: the ranges of its places, in their order.
  static constexpr const char* kRanges = "ranges";

  // Attaches itself to the module, which must not be moved to another device from then on. kUsage if an op of it has no
  // int8 form.
  explicit QuantizedTraining(const nn::GraphModule& module);

  // Ranges from what the module computes in floats: the mean over batches of the largest magnitude. `forward` takes one
  // batch through it, or returns false. From then on, ranges follow every batch of training by a hundredth.
  void calibrate(const std::function<bool()>& forward);

 private:
  struct Core;
  std::shared_ptr<Core> core_;  // shared with the module
};

// The ranges of a checkpoint of such a module, by the names of values in the frozen network.
std::map<std::string, float> named_ranges(const Graph& trained, const torch::Tensor& ranges);

}  // namespace onetap
