// Active Shift Layers (Jeon & Kim): every channel of an image moves by two trained numbers. Their gradients are exact;
// the optimiser takes them as unit vectors (nn/parameter_rule.h).
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/nn/torch.h"

namespace onetap::nn {

// The op `activeshift`: channel c by weight[c] = (rows, columns), real numbers. y[n, c, h, w] is x[n, c] at
// (h * stride + rows, w * stride + columns), bilinear between the four pixels around it, zeros outside.
torch::Tensor active_shift(const torch::Tensor& x, const torch::Tensor& weight, Extent2 stride);

class ActiveShift2dImpl : public torch::nn::Module {
 public:
  torch::Tensor weight;  // [channels, 2]: rows and columns

  // Draws the shifts uniformly in [-1, 1).
  explicit ActiveShift2dImpl(int64_t channels, Extent2 stride = {1, 1});
  torch::Tensor forward(const torch::Tensor& x) { return active_shift(x, weight, stride_); }
  void pretty_print(std::ostream& stream) const override;

 private:
  const Extent2 stride_;
};
TORCH_MODULE(ActiveShift2d);

}  // namespace onetap::nn
