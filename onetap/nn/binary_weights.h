// Layers with weights of one bit: BinaryConnect (BC), and binary weight networks (BWN).
//
//   BC:   the layer multiplies by sign(W). The gradient of the binary weights goes to W unchanged, and W is clipped to
//         [-1, 1] after every step.
//   BWN:  by sign(W) * mean |W|, over the layer or over each filter; no clipping.
//
// sign(0) is 1: one bit has no third value.
#pragma once

#include "onetap/nn/trained_conv.h"

namespace onetap::nn {

enum class BinaryScale {
  kOne,     // weights are +-1
  kLayer,   // +- the mean magnitude of the layer
  kFilter,  // +- that of each output
};

// Its gradient with respect to `weight` is that of the result, unchanged (straight through).
torch::Tensor binary_weight(const torch::Tensor& weight, BinaryScale scale);

class BinaryWeights : public TrainedConv2d {
 public:
  BinaryWeights(const Node& node, int64_t in_channels);

  torch::Tensor soft_weight(const torch::Tensor& temperature) const override;
  torch::Tensor finished_weight(AttentionMode mode) const override;
  FrozenConv freeze() const override;
  void after_step() override;

 private:
  const BinaryScale scale_;
};

// The layer of a conv or linear node whose method is `bc` or `bwn`.
std::shared_ptr<TrainedConv> make_binary_weights(const Node& node, int64_t in_channels);

}  // namespace onetap::nn
