// LibTorch, and the few places where 1.13 and 2.x differ. The only header of onetap that includes it.
#pragma once

#include <torch/torch.h>
#include <torch/version.h>

namespace onetap {

#define ONETAP_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// Positions of `scores` along the last dimension, best first, ties in favour of the lower position.
inline torch::Tensor sorted_positions(const torch::Tensor& scores) {
  return std::get<1>(torch::sort(scores, /*stable=*/true, /*dim=*/-1, /*descending=*/true));
}

}  // namespace onetap
