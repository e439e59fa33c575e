// Batches mixed by data/mix.h, in LibTorch's own ops.
#pragma once

#include "onetap/data/mix.h"
#include "onetap/nn/torch.h"

namespace onetap {

// The images [N, C, H, W] of a batch, each mixed with the one that is paired with it; in the same type and memory
// format. Their labels are paired likewise: labels.flip(0).
torch::Tensor mixed(const torch::Tensor& images, const Mix& mix);

}  // namespace onetap
