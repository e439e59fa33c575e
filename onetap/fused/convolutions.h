// Gradients of single convolutions, and what convolutions cost alone.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/nn/torch.h"

namespace onetap::fused {

enum class Gradient { kInput, kWeight };

torch::Tensor convolution_gradient(Gradient of, const torch::Tensor& dy, const torch::Tensor& x,
                                   const torch::Tensor& weight, const Node& node);

// A convolution of a network with a random input and output gradient.
struct LoneConvolution {
  const Node* node = nullptr;  // of the network's graph
  torch::Tensor weight, x, dy;
  bool of_image = false;  // nobody asks for the image's gradient

  // Forward and both gradients.
  void run() const;
};

// With `in` and `out` channels, which may be padded, for so many images. The weight is in the activations' type.
LoneConvolution lone_convolution(const Graph& graph, const Node& node, const torch::Tensor& weight, int64_t in,
                                 int64_t out, int64_t images);

}  // namespace onetap::fused
