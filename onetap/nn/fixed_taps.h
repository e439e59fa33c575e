// Convolutions whose taps are chosen before training and stay: at random, or by the magnitude of trained weights.
#pragma once

#include "onetap/base/tap_layout.h"
#include "onetap/nn/trained_conv.h"

namespace onetap::nn {

class FixedTapsConv : public TrainedConv2d {
 public:
  // Positions of `random-taps` are drawn from LibTorch's generator, those of `magnitude` are of the largest weights.
  FixedTapsConv(const Node& node, int64_t in_channels);

  // A buffer, so that a checkpoint has it: [output blocks, input blocks, taps], ascending within a set.
  torch::Tensor positions;

  const TapLayout& layout() const { return layout_; }

  torch::Tensor soft_weight(const torch::Tensor& temperature) const override;
  torch::Tensor finished_weight(AttentionMode mode) const override;
  FrozenConv freeze() const override;
  std::optional<TapChoice> describe() const override;
  torch::Tensor weights_imported(const ImportedWeights& imported) override;

 private:
  bool by_magnitude() const;
  torch::Tensor codes() const;
  torch::Tensor mask_of_sets() const;
  void check_positions() const;

  const TapLayout layout_;
};

// For every set the `taps` positions with the largest sum of |w| over its slices, in ascending order; ties go to the
// lower position. weight: [outputs, inputs, kernel...].
torch::Tensor largest_positions(const torch::Tensor& weight, const TapLayout& layout);

// The layer of a node whose method is `random-taps` or `magnitude`.
std::shared_ptr<TrainedConv> make_fixed_taps(const Node& node, int64_t in_channels);

}  // namespace onetap::nn
