#include "onetap/freeze/freeze.h"

#include "onetap/base/fail.h"
#include "onetap/base/half.h"
#include "onetap/graph/batch_norm.h"
#include "onetap/nn/attention.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/tap/fold.h"

#include <unordered_map>

namespace onetap {
namespace {

std::vector<float> to_floats(const torch::Tensor& tensor) {
  const auto flat = tensor.to(torch::kCPU, torch::kFloat32).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

// Per channel: what a batch norm in evaluation multiplies by, and what it adds.
struct ScaleShift {
  torch::Tensor scale, shift;
};

class Freezer {
 public:
  explicit Freezer(const nn::GraphModule& module) : form_(frozen_form(module->graph())) {
    for (const auto& [name, tensor] : nn::state_of(*module)) state_[name] = tensor;
    for (const auto& sal : module->sal_layers()) sal_[sal.name] = sal.layer;
  }

  TapNet run(WeightType type) {
    TapNet net;
    net.graph = form_.graph;
    net.weight_type = type;
    for (const Node& node : net.graph.nodes()) {
      if (layer_shapes(net.graph, node).weight.empty()) continue;
      LayerTensors tensors = freeze_node(node);
      if (type == WeightType::kF16) {
        for (float& weight : tensors.weight) weight = float_from_half(half_from_float(weight));
      }
      net.layers[node.name] = std::move(tensors);
    }
    check_tap_net(net);
    return net;
  }

 private:
  torch::Tensor state(const std::string& name) const { return state_.at(name).to(torch::kCPU, torch::kFloat64); }

  ScaleShift batch_norm(const std::string& name) const {
    const auto scale = state(name + ".weight") / (state(name + ".running_var") + kBatchNormEpsilon).sqrt();
    return {scale, state(name + ".bias") - state(name + ".running_mean") * scale};
  }

  LayerTensors freeze_node(const Node& node) const {
    LayerTensors tensors;
    if (node.op == Op::kAffine) {
      const ScaleShift norm = batch_norm(node.name);
      tensors.weight = to_floats(norm.scale);
      tensors.bias = to_floats(norm.shift);
      return tensors;
    }
    auto weight = state(node.name + ".weight");
    if (node.op == Op::kTapConv) {
      const auto positions = nn::hard_positions(sal_.at(node.name)->logits()).to(torch::kCPU);
      weight = weight.flatten(2).gather(2, nn::expand_groups(positions, node.method.share, node.out));
      const auto flat = positions.to(torch::kInt16).contiguous();
      tensors.positions.assign(flat.data_ptr<int16_t>(), flat.data_ptr<int16_t>() + flat.numel());
    }
    const auto bias = state_.find(node.name + ".bias");
    torch::Tensor shift = bias == state_.end() ? torch::Tensor() : bias->second.to(torch::kCPU, torch::kFloat64);
    if (const auto folded = form_.folded.find(node.name); folded != form_.folded.end()) {
      const ScaleShift norm = batch_norm(folded->second);
      std::vector<int64_t> per_output(static_cast<size_t>(weight.dim()), 1);
      per_output[0] = -1;
      weight = weight * norm.scale.view(per_output);
      shift = shift.defined() ? shift * norm.scale + norm.shift : norm.shift;
    }
    tensors.weight = to_floats(weight);
    if (shift.defined()) tensors.bias = to_floats(shift);
    return tensors;
  }

  const FrozenForm form_;
  std::unordered_map<std::string, torch::Tensor> state_;
  std::unordered_map<std::string, std::shared_ptr<nn::ShiftAttentionConvBase>> sal_;
};

}  // namespace

TapNet freeze(const nn::GraphModule& module, WeightType type) {
  const torch::NoGradGuard no_grad;
  return Freezer(module).run(type);
}

}  // namespace onetap
