#include "onetap/nn/empty_slices.h"

#include "onetap/nn/attention_constants.h"

namespace onetap::nn {

torch::Tensor keep_gate(const torch::Tensor& keep, int64_t kept, const torch::Tensor& temperature) {
  // Of any scale: squares of small logits would be 0.
  const auto largest = keep.detach().abs().max();
  const auto flat = keep.flatten() / largest.masked_fill(largest == 0, 1.0);
  const auto sorted = std::get<0>(flat.detach().sort(/*dim=*/0, /*descending=*/true));
  // Each half alone: the sum of two large numbers is none.
  const auto border = sorted.select(0, kept - 1) / 2 + sorted.select(0, kept) / 2;
  const auto variance = flat.var(/*unbiased=*/true);
  // Logits that are all equal have no sd: all gates are 1/2, and the square root's slope stays finite.
  const auto sd = variance.masked_fill(variance == 0, 1.0).sqrt();
  const auto exponent = (flat - border) / (sd * temperature);
  return torch::sigmoid(exponent.clamp(kDeepestExponent, -kDeepestExponent)).view(keep.sizes());
}

torch::Tensor keep_mask(const torch::Tensor& keep, int64_t kept) {
  const torch::NoGradGuard no_grad;
  const auto flat = keep.flatten();
  const auto order = std::get<1>(torch::sort(flat, /*stable=*/true, /*dim=*/0, /*descending=*/true));
  return torch::zeros_like(flat).scatter_(0, order.narrow(0, 0, kept), 1.0).view(keep.sizes());
}

}  // namespace onetap::nn
