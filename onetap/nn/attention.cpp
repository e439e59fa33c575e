#include "onetap/nn/attention.h"

#include "onetap/nn/attention_constants.h"

namespace onetap::nn {
namespace {

// Logits less their slice's maximum, and the sd of the slice's logits, in a unit that both have in common: N less its
// maximum is the one over the other.
struct Differences {
  torch::Tensor below, sd;
};

Differences differences(const torch::Tensor& logits) {
  // Neither sd nor softmax sees the shift, so the maximum is a constant for the gradient. The difference of near
  // numbers is exact: what is left is as precise as the logits are.
  const auto below = logits - logits.detach().amax(-1, /*keepdim=*/true);
  // In units of a power of two near the largest difference, squares neither vanish nor overflow; N does not see the
  // unit, so it is a constant, too. Dividing by it rounds nothing.
  const auto range = -below.detach().amin(-1, /*keepdim=*/true);
  const auto flat = range == 0;
  const auto mantissa = std::get<0>(torch::frexp(range));  // in [0.5, 1): twice it, for 2^128 is no float
  const auto unit = (range / (mantissa * 2)).masked_fill(flat, 1.0);
  const auto scaled = below / unit;
  const auto variance = scaled.var(/*dim=*/at::IntArrayRef{-1}, /*unbiased=*/true, /*keepdim=*/true);
  // The square root of the replaced values has a finite slope, so no NaN enters the gradient of masked_fill().
  return {scaled, variance.masked_fill(flat, 1.0).sqrt()};
}

}  // namespace

torch::Tensor logits_below_best(const torch::Tensor& logits) {
  const auto [below, sd] = differences(logits);
  return below / sd;
}

torch::Tensor soft_attention(const torch::Tensor& logits, double temperature) {
  return soft_attention(logits, torch::scalar_tensor(temperature, torch::kFloat64));
}

torch::Tensor soft_attention(const torch::Tensor& logits, const torch::Tensor& temperature) {
  const auto [below, sd] = differences(logits);
  const auto exponent = below / (sd * temperature);
  const auto each = torch::softmax(exponent.clamp_min(kDeepestExponent), -1);
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
  if (taps > 1) score = logits_below_best(logits);
  const auto best = sorted_positions(score.amax(0)).narrow(-1, 0, taps);
  return std::get<0>(best.sort(-1));
}

torch::Tensor hard_mask(const torch::Tensor& logits) {
  const torch::NoGradGuard no_grad;
  return torch::zeros_like(logits[0]).scatter_(-1, hard_positions(logits), 1.0);
}

torch::Tensor trained_attention(const torch::Tensor& logits, const torch::Tensor& temperature, Relax relax) {
  const auto soft = soft_attention(logits, temperature);
  if (relax == Relax::kSoftmax) return soft;
  // The difference is exactly 0, or NaN, and passes the gradient on.
  return hard_mask(logits) + (soft - soft.detach());
}

torch::Tensor rounded_mask(const torch::Tensor& logits, double temperature) {
  const torch::NoGradGuard no_grad;
  return (soft_attention(logits, temperature) > 0.5).to(logits.scalar_type());
}

torch::Tensor expand_sets(const torch::Tensor& by_set, const TapLayout& layout) {
  // repeat_interleave() would ask the device for its number of rows.
  const auto repeat = [](const torch::Tensor& blocks, int64_t dim, int64_t share, int64_t length) {
    if (share == 1) return blocks;
    std::vector<int64_t> sizes = blocks.sizes().vec();
    sizes.insert(sizes.begin() + dim + 1, share);
    return blocks.unsqueeze(dim + 1).expand(sizes).flatten(dim, dim + 1).narrow(dim, 0, length);
  };
  return repeat(repeat(by_set, 1, layout.share_inputs, layout.inputs), 0, layout.share_outputs, layout.outputs);
}

torch::Tensor magnitude_logits(const torch::Tensor& weight, const TapLayout& layout) {
  const torch::NoGradGuard no_grad;
  const auto sums = sum_sets(weight.flatten(2).abs(), layout);
  const auto largest = sums.amax(-1, /*keepdim=*/true);
  const auto parts = sums / largest.masked_fill(largest == 0, 1.0);
  const auto best = sorted_positions(parts).narrow(-1, 0, layout.taps);
  const auto mean = parts.mean(-1, /*keepdim=*/true);
  std::vector<torch::Tensor> taps;
  for (int64_t tap = 0; tap < layout.taps; ++tap) {
    const auto own = best.narrow(-1, tap, 1);
    const auto without_best = parts.scatter(-1, best, mean.expand_as(best));
    taps.push_back(without_best.scatter(-1, own, parts.gather(-1, own)));
  }
  return torch::stack(taps);
}

torch::Tensor sum_sets(const torch::Tensor& by_slice, const TapLayout& layout) {
  const int64_t rows = layout.output_blocks(), columns = layout.input_blocks();
  // Zeros fill the blocks at the ends up.
  const auto filled = torch::constant_pad_nd(by_slice, {0, 0, 0, columns * layout.share_inputs - layout.inputs, 0,
                                                        rows * layout.share_outputs - layout.outputs});
  return filled.view({rows, layout.share_outputs, columns, layout.share_inputs, -1}).sum(at::IntArrayRef{1, 3});
}

}  // namespace onetap::nn
