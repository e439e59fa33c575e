// What the scores of this module have in common.
#pragma once

#include "onetap/nn/torch.h"

#include <vector>

namespace onetap {

// A vector of numbers, one for each channel, out of LibTorch.
inline std::vector<double> channel_values(const torch::Tensor& values) {
  const torch::Tensor plain = values.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

}  // namespace onetap
