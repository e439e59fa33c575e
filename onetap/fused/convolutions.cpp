#include "onetap/fused/convolutions.h"

#include "onetap/nn/convolve.h"

namespace onetap::fused {
namespace {

// at:: wants one number per spatial dimension.
std::vector<int64_t> extents(const Extent2& extent) {
  return {extent.h, extent.w};
}

}  // namespace

torch::Tensor convolution_gradient(Gradient of, const torch::Tensor& dy, const torch::Tensor& x,
                                   const torch::Tensor& weight, const Node& node) {
  if (nn::needs_channels_first(x, weight, node) &&
      !(x.is_contiguous() && dy.is_contiguous() && weight.is_contiguous())) {
    return convolution_gradient(of, dy.contiguous(), x.contiguous(), weight.contiguous(), node);
  }
  const bool of_input = of == Gradient::kInput;
  const auto result =
      at::convolution_backward(dy, x, weight, at::OptionalIntArrayRef(), extents(node.stride), extents(node.padding),
                               extents(node.dilation), false, {0, 0}, node.groups, {of_input, !of_input, false});
  return of_input ? std::get<0>(result) : std::get<1>(result);
}

void LoneConvolution::run() const {
  const torch::NoGradGuard no_grad;
  nn::convolve(x, weight, {}, *node);
  if (!of_image) convolution_gradient(Gradient::kInput, dy, x, weight, *node);
  convolution_gradient(Gradient::kWeight, dy, x, weight, *node);
}

LoneConvolution lone_convolution(const Graph& graph, const Node& node, const torch::Tensor& weight, int64_t in,
                                 int64_t out, int64_t images) {
  const Node& source = graph.source(node);
  const auto random = [&](int64_t channels, const Shape& shape) {
    return torch::randn({images, channels, shape[1], shape[2]}, weight.options().requires_grad(false))
        .contiguous(torch::MemoryFormat::ChannelsLast);
  };
  return {&node, weight.detach(), random(in, source.shape), random(out, node.shape), source.op == Op::kInput};
}

}  // namespace onetap::fused
