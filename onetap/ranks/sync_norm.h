// Batch norm by the statistics of all ranks' images.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/ranks/rank_group.h"

namespace onetap {

// In training, what torch::nn::BatchNorm2d computes of the images of all ranks together; gradients of weight and bias
// are this rank's share, which add up to theirs.
torch::Tensor sync_norm(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, RankGroup& group);

// For every batch norm of the module from now on. `group` must outlive it.
void synchronise_norms(nn::GraphModule& module, RankGroup& group);

}  // namespace onetap
