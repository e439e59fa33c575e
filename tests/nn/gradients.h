// Gradients against finite differences.
#pragma once

#include "onetap/nn/torch.h"

#include <gtest/gtest.h>

#include <functional>

namespace onetap::testing {

// Central differences against autograd, for every single value of a tensor.
inline void check_gradient(const std::function<torch::Tensor()>& loss, torch::Tensor tensor, const char* name) {
  const auto gradient = torch::autograd::grad({loss()}, {tensor})[0].flatten();
  const torch::NoGradGuard no_grad;
  constexpr double kStep = 1e-6;
  const auto values = tensor.flatten();  // a view: the tensors here are contiguous
  const double scale = gradient.abs().max().item<double>() + 1e-12;
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double old = values[i].item<double>();
    values[i] = old + kStep;
    const double up = loss().item<double>();
    values[i] = old - kStep;
    const double down = loss().item<double>();
    values[i] = old;
    // Error of a central difference: h^2 f''' / 6 plus rounding eps |f| / h, both far below 1e-5 of the largest.
    ASSERT_NEAR(gradient[i].item<double>(), (up - down) / (2 * kStep), 1e-5 * scale + 1e-9) << name << "[" << i << "]";
  }
}

}  // namespace onetap::testing
