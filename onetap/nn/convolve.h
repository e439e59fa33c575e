// A convolution of images with the window of a node, by a weight that the caller has.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/nn/torch.h"

namespace onetap::nn {

// `bias` may be undefined.
torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                       const Node& node);

// Whether memory must not lie channels last: see needs_channels_first() of LibTorch.
bool needs_channels_first(const torch::Tensor& x, const torch::Tensor& weight, const Node& node);

}  // namespace onetap::nn
