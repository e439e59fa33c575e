// Batch norm in training.
#pragma once

#include "onetap/nn/torch.h"

namespace onetap::nn {

// As LibTorch's, running statistics included. On a CPU LibTorch (1.13 as well as 2.11) sums channels-last activations
// in 32 bits one after another, so that over 100,000 pixels variances are off by 3e-5; those we sum ourselves, to 1e-7.
torch::Tensor training_norm(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x);

}  // namespace onetap::nn
