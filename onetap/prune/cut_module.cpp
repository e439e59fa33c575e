#include "onetap/prune/cut_module.h"

#include "onetap/base/fail.h"
#include "onetap/nn/tensor_file.h"

#include <algorithm>
#include <unordered_map>

namespace onetap {
namespace {

torch::Tensor pick(const torch::Tensor& tensor, int64_t dim, const std::vector<int64_t>& places) {
  return tensor.index_select(dim, torch::tensor(places, torch::kInt64).to(tensor.device()));
}

// Those from `first` on, `count` of them at most, counted from `first`.
std::vector<int64_t> part_of(const std::vector<int64_t>& places, int64_t first, int64_t count) {
  std::vector<int64_t> part;
  for (const int64_t place : places) {
    if (place >= first && place < first + count) part.push_back(place - first);
  }
  return part;
}

// [outputs, inputs of a group, ...]: a group's outputs read what stays of its own inputs.
torch::Tensor cut_conv_weight(const torch::Tensor& weight, int64_t groups, const KeptChannels& kept) {
  const int64_t out_each = weight.size(0) / groups, in_each = weight.size(1);
  std::vector<torch::Tensor> parts;
  for (int64_t group = 0; group < groups; ++group) {
    const auto outputs = part_of(kept.outputs, group * out_each, out_each);
    if (outputs.empty()) continue;
    const auto rows = pick(weight.narrow(0, group * out_each, out_each), 0, outputs);
    parts.push_back(pick(rows, 1, part_of(kept.inputs, group * in_each, in_each)));
  }
  return torch::cat(parts, 0);
}

torch::Tensor cut_tensor(const Node& node, const KeptChannels& kept, const std::string& name,
                         const torch::Tensor& tensor) {
  const bool is_weight = name == node.name + ".weight";
  if (is_weight && node.op == Op::kConv) return cut_conv_weight(tensor, node.groups, kept);
  if (is_weight && node.op == Op::kLinear) return pick(pick(tensor, 0, kept.outputs), 1, kept.inputs);
  if (tensor.dim() == 0) return tensor;  // batch norm's counter
  if (tensor.size(0) != node.shape[0]) {
    fail("[prune] expected {} values in '{}', one for each channel, got {}", node.shape[0], name, tensor.size(0));
  }
  return pick(tensor, 0, kept.outputs);
}

}  // namespace

nn::GraphModule cut_module(const nn::GraphModule& module, const ChannelCut& cut) {
  const torch::NoGradGuard no_grad;
  std::unordered_map<std::string, torch::Tensor> before;
  for (auto& [name, tensor] : nn::state_of(*module)) before[name] = tensor;
  nn::GraphModule smaller(cut.graph);
  for (auto [name, tensor] : nn::state_of(*smaller)) {
    const Node& node = module->graph().node(name.substr(0, name.rfind('.')));
    tensor.copy_(cut_tensor(node, cut.kept.at(node.name), name, before.at(name)));
  }
  if (!before.empty()) smaller->to(before.begin()->second.device());
  return smaller;
}

}  // namespace onetap
