// Shift Attention Layers: convolutions that learn which taps of every kernel slice to keep.
//
//   onetap::nn::ShiftAttentionConv2d conv(onetap::nn::ShiftAttentionConvOptions<2>(16, 32, 3).stride(2));
//   conv->set_temperature(6.7);        // falls while training goes on
//   auto y = conv->forward(x);         // soft: every weight scaled by its attention
//   conv->set_mode(onetap::nn::AttentionMode::kHard);
//   auto z = conv->forward(x);         // hard: `taps` weights per slice, the rest zero
#pragma once

#include "onetap/base/tap_layout.h"
#include "onetap/graph/sal.h"
#include "onetap/nn/trained_conv.h"

#include <optional>

namespace onetap::nn {

// Options in the manner of torch::nn::ConvOptions: kernel, stride, dilation and padding take one number or D.
template <size_t D>
struct ShiftAttentionConvOptions {
  ShiftAttentionConvOptions(int64_t in_channels, int64_t out_channels, torch::ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}

  TORCH_ARG(int64_t, in_channels);
  TORCH_ARG(int64_t, out_channels);
  TORCH_ARG(torch::ExpandingArray<D>, kernel_size);
  TORCH_ARG(torch::ExpandingArray<D>, stride) = 1;
  TORCH_ARG(torch::ExpandingArray<D>, dilation) = 1;
  // Unset: dilation * (kernel / 2), "same" for odd kernels and stride 1.
  TORCH_ARG(std::optional<torch::ExpandingArray<D>>, padding) = std::nullopt;
  TORCH_ARG(int64_t, groups) = 1;
  TORCH_ARG(int64_t, taps) = 1;
  TORCH_ARG(int64_t, share) = 1;         // outputs of a block that has its positions in common
  TORCH_ARG(int64_t, share_inputs) = 1;  // and inputs
  TORCH_ARG(TapInit, init) = TapInit::kUniform;
  TORCH_ARG(Relax, relax) = Relax::kSoftmax;
  TORCH_ARG(double, density) = 1;  // share of the sets of positions that are kept: empty_slices.h
};

// What every dimension has in common. Soft is P = softmax(N / T), hard are ones at the best `taps` positions. With
// Relax::kStraightThrough the soft mask is the hard one in the forward pass, and P for the gradient of the logits.
class ShiftAttentionConvBase : public TrainedConv {
 public:
  // [output blocks, input blocks, S]; with several taps [taps, output blocks, input blocks, S].
  torch::Tensor attention;
  // [output blocks, input blocks]: which sets stay, where some do not; else undefined.
  torch::Tensor keep;

  const TapLayout& layout() const { return layout_; }
  int64_t taps() const { return layout_.taps; }
  int64_t share() const { return layout_.share_outputs; }
  Relax relax() const { return relax_; }

  // Attention as [taps, output blocks, input blocks, S].
  torch::Tensor logits() const;
  // The mask of the present mode and temperature, shaped like `weight`.
  torch::Tensor mask() const;
  // weight * mask().
  torch::Tensor masked_weight() const { return effective_weight(); }

  torch::Tensor soft_weight(const torch::Tensor& temperature) const override;
  torch::Tensor finished_weight(AttentionMode mode) const override;
  FrozenConv freeze() const override;
  std::optional<TapChoice> describe() const override;
  torch::Tensor weights_imported(const ImportedWeights& imported) override;
  torch::Tensor as_dense(const torch::Tensor& effective) const override;
  // Logits become ones at the kept positions, one for each tap, and zeros elsewhere; those of sets likewise.
  std::vector<std::string> settle() override;

 protected:
  // Sets the sizes of the layout, whose taps and sharing are there.
  void make_parameters(int64_t out, int64_t in_per_group, at::IntArrayRef kernel);
  void draw_parameters();

  TapLayout layout_;
  TapInit init_ = TapInit::kUniform;
  Relax relax_ = Relax::kSoftmax;
  double density_ = 1;

 private:
  // Of every set [output blocks, input blocks, S]: P, what multiplies the weights in training, and the hard max. Empty
  // sets are zeros.
  torch::Tensor soft_sets(const torch::Tensor& temperature) const;
  torch::Tensor trained_sets(const torch::Tensor& temperature) const;
  torch::Tensor hard_sets() const;
  // 1 for sets that stay: [output blocks, input blocks, 1].
  torch::Tensor kept_mask() const;
  // hard_positions(), S where sets are empty.
  torch::Tensor hard_codes() const;
  // What sets have, for every weight.
  torch::Tensor spread(const torch::Tensor& by_set) const;
  torch::Tensor finished_mask(AttentionMode mode) const;
};

template <size_t D>
class ShiftAttentionConvImpl : public ShiftAttentionConvBase {
 public:
  // Throws onetap::Error for taps > S, share > out, share_inputs > in / groups, groups that do not divide, a kernel of
  // one position.
  explicit ShiftAttentionConvImpl(const ShiftAttentionConvOptions<D>& options);

  // Draws weight as torch::nn::Conv does and attention uniformly in [0, 1), from LibTorch's generator.
  void reset_parameters() { draw_parameters(); }
  torch::Tensor forward(const torch::Tensor& x) override;
  void pretty_print(std::ostream& stream) const override;

  ShiftAttentionConvOptions<D> options;
};

using ShiftAttentionConv1dImpl = ShiftAttentionConvImpl<1>;
using ShiftAttentionConv2dImpl = ShiftAttentionConvImpl<2>;
using ShiftAttentionConv3dImpl = ShiftAttentionConvImpl<3>;
TORCH_MODULE(ShiftAttentionConv1d);
TORCH_MODULE(ShiftAttentionConv2d);
TORCH_MODULE(ShiftAttentionConv3d);

// The layer of a node whose method is `sal`.
std::shared_ptr<TrainedConv> make_shift_attention_conv(const Node& node, int64_t in_channels);

}  // namespace onetap::nn
