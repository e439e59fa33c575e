#include "onetap/nn/binary_weights.h"

namespace onetap::nn {
namespace {

torch::Tensor scale_of(const torch::Tensor& weight, BinaryScale scale) {
  if (scale == BinaryScale::kLayer) return weight.abs().mean();
  std::vector<int64_t> of_filter;
  for (int64_t dim = 1; dim < weight.dim(); ++dim) of_filter.push_back(dim);
  return weight.abs().mean(of_filter, /*keepdim=*/true);
}

class StraightThrough : public torch::autograd::Function<StraightThrough> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& weight, int64_t scale) {
    const auto signs = weight.ge(0).to(weight.scalar_type()).mul_(2).sub_(1);
    const auto kind = static_cast<BinaryScale>(scale);
    return kind == BinaryScale::kOne ? signs : signs * scale_of(weight, kind);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& grads) {
    return {grads[0], {}};
  }
};

BinaryScale scale_of(const Method& method) {
  if (method.name() == "bc") return BinaryScale::kOne;
  return method.word("scale") == "filter" ? BinaryScale::kFilter : BinaryScale::kLayer;
}

}  // namespace

torch::Tensor binary_weight(const torch::Tensor& weight, BinaryScale scale) {
  return StraightThrough::apply(weight, static_cast<int64_t>(scale));
}

BinaryWeights::BinaryWeights(const Node& node, int64_t in_channels)
    : TrainedConv2d(node, in_channels), scale_(scale_of(node.method)) {}

torch::Tensor BinaryWeights::soft_weight(const torch::Tensor&) const {
  return binary_weight(weight, scale_);
}

torch::Tensor BinaryWeights::finished_weight(AttentionMode) const {
  return binary_weight(weight, scale_);
}

FrozenConv BinaryWeights::freeze() const {
  return {binary_weight(weight.detach(), scale_), {}, bias};
}

void BinaryWeights::after_step() {
  const torch::NoGradGuard no_grad;
  if (scale_ == BinaryScale::kOne) weight.clamp_(-1, 1);
}

std::shared_ptr<TrainedConv> make_binary_weights(const Node& node, int64_t in_channels) {
  return std::make_shared<BinaryWeights>(node, in_channels);
}

}  // namespace onetap::nn
