// Trained modules against what they are frozen to.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/tap_net.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace onetap::testing {

// Statistics and scales as training leaves them, not the zeros and ones of a fresh module.
inline void disturb(nn::GraphModule& module) {
  const torch::NoGradGuard no_grad;
  for (auto& item : module->named_buffers()) {
    if (item.key().find("running_mean") != std::string::npos) item.value().normal_(0, 0.5);
    if (item.key().find("running_var") != std::string::npos) item.value().uniform_(0.5, 2.0);
  }
  for (const auto& child : module->modules()) {
    if (auto* norm = child->as<torch::nn::BatchNorm2d>()) {
      norm->weight.uniform_(0.5, 1.5);
      norm->bias.normal_(0, 0.5);
    }
  }
}

// Largest difference over the largest output, LibTorch's hard network against the executor.
inline double difference(nn::GraphModule& module, const TapNet& net) {
  const torch::NoGradGuard no_grad;
  module->eval();
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  std::vector<int64_t> shape = module->graph().input().shape;
  shape.insert(shape.begin(), 2);
  const auto x = torch::randn(shape);
  const auto y = module->forward(x).contiguous();
  double largest = 0;
  for (int64_t image = 0; image < 2; ++image) {
    const auto got = run_reference(net, x[image].contiguous().data_ptr<float>());
    const float* expected = y[image].data_ptr<float>();
    EXPECT_EQ(static_cast<int64_t>(got.size()), y.size(1));
    for (size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - expected[i]));
    }
  }
  return largest / std::max(1e-6, y.abs().max().item<double>());
}

}  // namespace onetap::testing
