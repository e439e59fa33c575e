// The arithmetic of a Shift Attention Layer's logits, apart from any layer.
//
// Shapes: logits A are [taps, G, H, S] with G blocks of outputs and H blocks of inputs (per conv group) that share
// positions, and S = product of the kernel's extents. Masks and probabilities are [G, H, S].
#pragma once

#include "onetap/base/tap_layout.h"
#include "onetap/graph/sal.h"
#include "onetap/nn/torch.h"

namespace onetap::nn {

// N less its maximum over the slice, where N = A / sd(A over the S positions), unbiased, gradient through the sd. At
// most 0, and the same for A at any scale, down to denormal numbers. A slice whose logits are all equal has no sd: it
// gives zeros, which makes its P uniform and its gradient finite. NaN among the logits makes the slice NaN.
torch::Tensor logits_below_best(const torch::Tensor& logits);

// P = softmax(N / T), the elementwise maximum over taps. The temperature as a tensor of one number, on the logits'
// device, is read there: nothing waits for the device, so a CUDA graph may hold it.
torch::Tensor soft_attention(const torch::Tensor& logits, const torch::Tensor& temperature);
torch::Tensor soft_attention(const torch::Tensor& logits, double temperature);

// The hard max: `taps` ones per slice. With one tap, the position of the largest logit. With several, each
// tap's largest logit; where two taps meet, the freed place goes to the position that lies least below a tap's
// maximum. Ties go to the lower position. Does not depend on the temperature.
torch::Tensor hard_mask(const torch::Tensor& logits);

// The positions of hard_mask in ascending order: [G, H, taps], int64.
torch::Tensor hard_positions(const torch::Tensor& logits);

// What multiplies the weights while they are trained: P, or with kStraightThrough the hard max, bit for bit, whose
// gradient is handed to P as it is. NaN among the logits of a set makes it NaN either way.
torch::Tensor trained_attention(const torch::Tensor& logits, const torch::Tensor& temperature, Relax relax);

// 1 where P > 0.5, else 0: what the authors' code does. A slice whose largest P is at most 0.5 becomes empty.
torch::Tensor rounded_mask(const torch::Tensor& logits, double temperature);

// What sets have, for every slice: [output blocks, input blocks, X] to [outputs, inputs, X].
torch::Tensor expand_sets(const torch::Tensor& by_set, const TapLayout& layout);

// Sums over the slices of every set: [outputs, inputs, X] to [output blocks, input blocks, X].
torch::Tensor sum_sets(const torch::Tensor& by_slice, const TapLayout& layout);

// Logits [taps, output blocks, input blocks, S] that stand in the order of the weights [outputs, inputs, kernel...]:
// the sums of |w| over the slices of a set, as parts of the largest. Tap i has the i-th largest position as its best:
// the other taps' best ones lie at the mean of the set.
torch::Tensor magnitude_logits(const torch::Tensor& weight, const TapLayout& layout);

}  // namespace onetap::nn
