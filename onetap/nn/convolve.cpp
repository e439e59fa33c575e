#include "onetap/nn/convolve.h"

namespace onetap::nn {
namespace {

std::vector<int64_t> extents(const Extent2& extent) {
  return {extent.h, extent.w};
}

}  // namespace

bool needs_channels_first(const torch::Tensor& x, const torch::Tensor& weight, const Node& node) {
  return onetap::needs_channels_first(x, weight, node.stride.h > 1 || node.stride.w > 1);
}

torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                       const Node& node) {
  const bool first = needs_channels_first(x, weight, node);
  return torch::conv2d(first ? x.contiguous() : x, first ? weight.contiguous() : laid_out_for(x, weight), bias,
                       extents(node.stride), extents(node.padding), extents(node.dilation), node.groups);
}

}  // namespace onetap::nn
