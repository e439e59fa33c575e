#include "onetap/freeze/clear_dropped.h"

#include "onetap/base/fail.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/tap/codes.h"

#include <algorithm>
#include <unordered_map>

namespace onetap {
namespace {

// 1 at the kept positions of every slice, 0 elsewhere: [out, in / groups, positions].
torch::Tensor kept_mask(const TapLayout& layout, const std::vector<uint16_t>& codes) {
  const std::vector<float> ones(static_cast<size_t>(layout.weights()), 1.0f);
  const std::vector<float> mask = spread_weights(layout, codes, ones.data());
  auto tensor = torch::empty({layout.outputs, layout.inputs, layout.positions});
  std::copy(mask.begin(), mask.end(), tensor.data_ptr<float>());
  return tensor;
}

}  // namespace

void clear_dropped(nn::GraphModule& module, const TapNet& net) {
  const torch::NoGradGuard no_grad;
  std::unordered_map<std::string, torch::Tensor> state;
  for (const auto& [name, tensor] : nn::state_of(*module)) state[name] = tensor;
  for (const Node& node : net.graph.nodes()) {
    if (node.op != Op::kTapConv) continue;
    const TapLayout layout = tap_layout(net.graph, node);
    if (layout.dropped == 0) continue;
    const auto found = state.find(node.name + ".weight");
    if (found == state.end()) fail("[freeze] expected a weight of '{}' in the module, got none", node.name);
    torch::Tensor weight = found->second;
    torch::Tensor mask = kept_mask(layout, net.tensors(node).positions);
    // A 1x1 convolution that took in a shift has one weight for the position that the shift gave it.
    if (weight.numel() == layout.slices()) mask = mask.amax(-1);
    weight.mul_(mask.to(weight.device(), weight.scalar_type()).view(weight.sizes()));
  }
}

}  // namespace onetap
