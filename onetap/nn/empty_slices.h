// Which sets of a Shift Attention Layer keep anything: one more logit per set.
//
// A layer that is to keep `kept` of its sets has a logit K for each: [output blocks, input blocks]. The border b lies
// between the `kept`-th largest K and the next, so that exactly `kept` lie above it at every step. While training, a
// set's attention is multiplied by
//
//   g = sigmoid((K - b) / (sd(K over the layer) * T))
//
// which is 1 less the probability of "none". T falls, and g becomes 1 above the border and 0 below it: the layer ends
// with the chosen number of sets. b is a constant for the gradient; a scale of K is of no effect, as with attention.
#pragma once

#include "onetap/nn/torch.h"

namespace onetap::nn {

// g of every set. kept: 1 to the number of sets less 1. The temperature is read on the device: nothing waits for it.
torch::Tensor keep_gate(const torch::Tensor& keep, int64_t kept, const torch::Tensor& temperature);

// 1 for the `kept` sets with the largest K, 0 for the others; of equals the first stay.
torch::Tensor keep_mask(const torch::Tensor& keep, int64_t kept);

}  // namespace onetap::nn
