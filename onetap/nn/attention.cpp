#include "onetap/nn/attention.h"

namespace onetap::nn {
namespace {

constexpr double kLeastVariance = 1e-12;

// exp(-60) = 9e-27 vanishes beside 1 in float. Without this bound, P of the losing positions runs through the
// denormal numbers as T falls, and a CPU convolves those several times slower.
constexpr double kDeepest = -60.0;

}  // namespace

torch::Tensor normalised_logits(const torch::Tensor& logits) {
  const auto variance = logits.var(/*dim=*/at::IntArrayRef{-1}, /*unbiased=*/true, /*keepdim=*/true);
  // The square root of the replaced values has a finite slope, so no NaN enters the gradient of where().
  const auto flat = variance < kLeastVariance;
  return logits / variance.masked_fill(flat, 1.0).sqrt();
}

torch::Tensor soft_attention(const torch::Tensor& logits, double temperature) {
  const auto scaled = normalised_logits(logits) / temperature;
  const auto below_best = scaled - scaled.detach().amax(-1, /*keepdim=*/true);  // softmax does not see the shift
  const auto each = torch::softmax(below_best.clamp_min(kDeepest), -1);
  if (each.size(0) == 1) return each.squeeze(0);
  torch::Tensor most = each[0];
  for (int64_t tap = 1; tap < each.size(0); ++tap) most = torch::maximum(most, each[tap]);
  return most;
}

torch::Tensor hard_positions(const torch::Tensor& logits) {
  const torch::NoGradGuard no_grad;
  const int64_t taps = logits.size(0);
  // With one tap the order of N is the order of A, without the rounding of a division.
  auto score = logits;
  if (taps > 1) {
    const auto n = normalised_logits(logits);
    score = n - n.amax(-1, /*keepdim=*/true);
  }
  const auto best = sorted_positions(score.amax(0)).narrow(-1, 0, taps);
  return std::get<0>(best.sort(-1));
}

torch::Tensor hard_mask(const torch::Tensor& logits) {
  const torch::NoGradGuard no_grad;
  return torch::zeros_like(logits[0]).scatter_(-1, hard_positions(logits), 1.0);
}

torch::Tensor rounded_mask(const torch::Tensor& logits, double temperature) {
  const torch::NoGradGuard no_grad;
  return (soft_attention(logits, temperature) > 0.5).to(logits.scalar_type());
}

torch::Tensor expand_groups(const torch::Tensor& grouped, int64_t share, int64_t out) {
  if (share == 1) return grouped;
  return grouped.repeat_interleave(share, 0).narrow(0, 0, out);
}

}  // namespace onetap::nn
