#include "onetap/freeze/freeze.h"

#include "onetap/base/fail.h"
#include "onetap/base/half.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/nn/attention.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/tap/fold.h"

#include <algorithm>
#include <unordered_map>

namespace onetap {
namespace {

Tensor to_floats(const torch::Tensor& tensor) {
  const auto flat = tensor.to(torch::kCPU, torch::kFloat32).contiguous();
  Tensor floats(DType::kF32, flat.sizes().vec());
  std::copy_n(flat.data_ptr<float>(), flat.numel(), floats.data<float>());
  return floats;
}

// The kept weights [outputs, inputs, taps] of a dense kernel [outputs, inputs, ...]: zeros for empty entries.
torch::Tensor kept_weights(const TapLayout& layout, const torch::Tensor& weight, const torch::Tensor& codes) {
  auto set_of = torch::empty({layout.slices()}, torch::kInt64);
  for (int64_t slice = 0; slice < layout.slices(); ++slice) {
    set_of.data_ptr<int64_t>()[slice] = layout.set_of(slice / layout.inputs, slice % layout.inputs);
  }
  const auto code = codes.reshape({layout.sets(), layout.taps}).index_select(0, set_of);
  const auto found =
      weight.reshape({layout.slices(), layout.positions}).gather(1, code.clamp_max(layout.positions - 1));
  return found.masked_fill(code.eq(layout.none()), 0).view({layout.outputs, layout.inputs, layout.taps});
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
        auto* weight = tensors.weight.data<float>();
        for (size_t i = 0; i < tensors.weight.count(); ++i) weight[i] = float_from_half(half_from_float(weight[i]));
      }
      net.layers[node.name] = std::move(tensors);
    }
    check_tap_net(net);
    return net;
  }

 private:
  torch::Tensor state(const std::string& name) const { return state_.at(name).to(torch::kCPU, torch::kFloat64); }

  ScaleShift batch_norm(const std::string& name) const {
    static const double eps = torch::nn::BatchNorm2dOptions(1).eps();
    const auto scale = state(name + ".weight") / (state(name + ".running_var") + eps).sqrt();
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
      weight = kept_weights(tap_layout(form_.graph, node), weight, positions);
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
