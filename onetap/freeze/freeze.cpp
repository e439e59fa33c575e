#include "onetap/freeze/freeze.h"

#include "onetap/base/fail.h"
#include "onetap/base/half.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/fold_norm.h"

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

class Freezer {
 public:
  explicit Freezer(const nn::GraphModule& module)
      : trained_graph_(module->graph()), form_(frozen_form(trained_graph_)) {
    for (const auto& [name, tensor] : nn::state_of(*module)) state_[name] = tensor;
    for (const auto& trained : module->trained_layers()) trained_[trained.name] = trained.layer;
  }

  TapNet run(WeightType type) {
    TapNet net;
    net.graph = form_.graph;
    net.weight_type = type;
    for (const Node& node : net.graph.nodes()) {
      if (layer_shapes(net.graph, node).weight.empty()) continue;
      LayerTensors tensors = freeze_node(node);
      if (type == WeightType::kF16 && follows_weight_type(node)) {
        auto* weight = tensors.weight.data<float>();
        for (size_t i = 0; i < tensors.weight.count(); ++i) weight[i] = float_from_half(half_from_float(weight[i]));
      }
      net.layers[node.name] = std::move(tensors);
    }
    for (const Node& node : form_.graph.nodes()) {
      // How many weights empty sets leave out is known only now.
      if (node.op == Op::kTapConv && tap_layout(form_.graph, node).may_be_empty) update_dropped(net, node.name);
    }
    check_tap_net(net);
    return net;
  }

 private:
  ScaleShift batch_norm(const std::string& name) const {
    const auto state = [&](const char* tensor) { return to_floats(state_.at(name + tensor)); };
    return ScaleShift({state(".weight"), state(".bias"), state(".running_mean"), state(".running_var"),
                       trained_graph_.node(name).epsilon});
  }

  // By its method; what has none stays as it was trained.
  nn::FrozenConv finished(const std::string& name) const {
    if (const auto trained = trained_.find(name); trained != trained_.end()) return trained->second->freeze();
    const auto bias = state_.find(name + ".bias");
    return {state_.at(name + ".weight"), {}, bias == state_.end() ? torch::Tensor() : bias->second};
  }

  LayerTensors freeze_node(const Node& node) const {
    if (node.op == Op::kAffine) return affine_layer(batch_norm(node.name));
    LayerTensors tensors;
    const nn::FrozenConv conv = finished(node.name);
    torch::Tensor weight = conv.weight;
    if (conv.codes.defined()) {
      const auto flat = conv.codes.to(torch::kCPU, torch::kInt16).contiguous();
      tensors.positions.assign(flat.data_ptr<int16_t>(), flat.data_ptr<int16_t>() + flat.numel());
    }
    if (const auto shifted = form_.shifted.find(node.name); shifted != form_.shifted.end()) {
      tensors.positions = shifted->second;
      weight = weight.flatten(2);  // [out, in, 1, 1]: its one position is the shift's now
    }
    tensors.weight = to_floats(weight);
    if (conv.bias.defined()) tensors.bias = to_floats(conv.bias);
    if (const auto folded = form_.folded.find(node.name); folded != form_.folded.end()) {
      fold_norm(batch_norm(folded->second), tensors);
    }
    return tensors;
  }

  const Graph trained_graph_;
  const FrozenForm form_;
  std::unordered_map<std::string, torch::Tensor> state_;
  std::unordered_map<std::string, std::shared_ptr<nn::TrainedConv>> trained_;
};

}  // namespace

TapNet freeze(const nn::GraphModule& module, WeightType type) {
  const torch::NoGradGuard no_grad;
  return Freezer(module).run(type);
}

}  // namespace onetap
