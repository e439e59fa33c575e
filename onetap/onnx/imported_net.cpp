// What an imported network becomes: one to train, one that is frozen.
#include "onetap/base/fail.h"
#include "onetap/base/safetensors.h"
#include "onetap/graph/uses.h"
#include "onetap/onnx/import.h"
#include "onetap/onnx/layer_facts.h"
#include "onetap/onnx/names.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/fold_norm.h"
#include "onetap/tap/tap_file.h"

namespace onetap {
namespace {

Tensor filled(size_t count, float value) {
  return Tensor::of(std::vector<float>(count, value), {static_cast<int64_t>(count)});
}

// A batch norm that multiplies and adds in evaluation, and nothing else.
void set_plain_norm(ImportedNet& net, const std::string& name, const Tensor& scale, const Tensor& shift) {
  net.tensors[name + ".weight"] = scale;
  net.tensors[name + ".bias"] = shift;
  net.tensors[name + ".running_mean"] = filled(shift.count(), 0);
  net.tensors[name + ".running_var"] = filled(shift.count(), kPlainNormVariance);
}

class Freezer {
 public:
  explicit Freezer(const ImportedNet& net) : net_(net), form_(frozen_form(net.graph)) {}

  TapNet freeze() const {
    TapNet frozen;
    frozen.graph = form_.graph;
    for (const Node& node : form_.graph.nodes()) {
      if (!layer_shapes(form_.graph, node).weight.empty()) frozen.layers[node.name] = layer(node);
    }
    return frozen;
  }

 private:
  const Tensor& tensor(const std::string& name) const { return net_.tensors.at(name); }

  ScaleShift norm(const std::string& name) const {
    return ScaleShift({tensor(name + ".weight"), tensor(name + ".bias"), tensor(name + ".running_mean"),
                       tensor(name + ".running_var"), net_.graph.node(name).epsilon});
  }

  LayerTensors layer(const Node& node) const {
    if (net_.graph.node(node.name).op == Op::kBatchNorm) return affine_layer(norm(node.name));
    LayerTensors tensors;
    tensors.weight = tensor(node.name + ".weight");
    const auto bias = net_.tensors.find(node.name + ".bias");
    if (bias != net_.tensors.end()) tensors.bias = bias->second;
    if (const auto folded = form_.folded.find(node.name); folded != form_.folded.end()) {
      fold_norm(norm(folded->second), tensors);
    }
    return tensors;
  }

  const ImportedNet& net_;
  const FrozenForm form_;
};

// Layers of our own model that had another form in the .tap file, where their weights still have it.
TapNet with_own_layers(TapNet net, const std::map<std::string, LayerFacts>& own) {
  TapNet made = std::move(net);
  const Graph from = std::move(made.graph);
  made.graph = Graph(from.name());
  int64_t dropped = 0;
  for (Node node : from.nodes()) {
    const auto facts = own.find(node.name);
    const auto layer = made.layers.find(node.name);
    if (facts != own.end() && layer != made.layers.end()) {
      if (facts->second.shift) {
        const Shape& in = from.node(node.inputs[0]).shape;
        if (auto shift = as_shift(node, *facts->second.shift, in, layer->second.weight)) {
          node = std::move(*shift);
          made.layers.erase(layer);
        }
      } else if (facts->second.taps > 0) {
        as_taps(facts->second, node, layer->second, dropped);
      }
    }
    made.graph.add(std::move(node));
  }
  made.graph.set_output(from.output());
  return made;
}

}  // namespace

ImportedNet trainable_net(const ImportedNet& net) {
  const Uses uses(net.graph);
  ImportedNet result;
  result.metadata = net.metadata;
  result.notes = net.notes;
  result.graph = Graph(net.graph.name());
  result.tensors = net.tensors;
  NameTable names;
  for (const Node& node : net.graph.nodes()) names.take({node.name});
  std::map<std::string, std::string> value_of;  // what a node's readers read now
  std::map<std::string, Tensor> taken;          // biases, by the batch norm that takes them in
  int64_t split = 0;
  for (const Node& old : net.graph.nodes()) {
    Node node = old;
    for (std::string& input : node.inputs) input = value_of.at(input);
    value_of[old.name] = old.name;
    if (node.op == Op::kAffine) {
      node.op = Op::kBatchNorm;
      set_plain_norm(result, node.name, net.tensors.at(node.name + ".weight"), net.tensors.at(node.name + ".bias"));
    }
    const bool has_bias = node.op == Op::kConv && node.bias;
    if (has_bias) node.bias = false;
    result.graph.add(node);
    // The batch norm takes the bias of the convolution before it out of its mean.
    if (const auto bias = taken.find(node.name); bias != taken.end()) {
      auto* mean = result.tensors.at(node.name + ".running_mean").data<float>();
      for (size_t c = 0; c < bias->second.count(); ++c) mean[c] -= bias->second.data<float>()[c];
    }
    if (!has_bias) continue;
    const Node* reader = uses.only_reader(old);
    auto bias = result.tensors.extract(old.name + ".bias");
    if (reader != nullptr && (reader->op == Op::kBatchNorm || reader->op == Op::kAffine)) {
      taken.emplace(reader->name, std::move(bias.mapped()));
      continue;
    }
    Node norm;
    norm.op = Op::kBatchNorm;
    norm.name = names.take({old.name + "_bn"});
    norm.inputs = {old.name};
    value_of[old.name] = norm.name;
    set_plain_norm(result, norm.name, filled(bias.mapped().count(), 1), bias.mapped());
    result.graph.add(std::move(norm));
    ++split;
  }
  result.graph.set_output(value_of.at(net.graph.output()));
  if (net.int8 != nullptr) {
    result.notes.push_back(
        "the model is quantized: weights are the floats that their bytes stand for, and values are not rounded");
  }
  if (split > 0) {
    result.notes.push_back(
        fmt::format("{} convolutions have a bias and no batch norm: the bias became a batch norm NAME_bn, to which "
                    "train --init gives statistics",
                    split));
  }
  return result;
}

std::optional<PixelScale> known_pixels(const ImportedNet& net) {
  if (net.metadata.count("mean") == 0 || net.metadata.count("sd") == 0) return std::nullopt;
  return find_pixels(net.metadata, "metadata");
}

std::string tensor_file(const ImportedNet& net, const std::optional<PixelScale>& pixels) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : net.tensors) views.push_back({name, tensor.dtype(), tensor.shape(), tensor.raw()});
  return safetensors_bytes(std::move(views), pixels ? pixel_metadata(*pixels) : Metadata{});
}

TapNet frozen_net(const ImportedNet& net) {
  if (net.int8 != nullptr) return *net.int8;
  TapNet frozen = Freezer(net).freeze();
  if (net.metadata.count("mean") > 0 && net.metadata.count("sd") > 0)
    read_tap_metadata(net.metadata, "metadata", frozen);
  if (const auto own = net.metadata.find(kFloatFactsKey); own != net.metadata.end()) {
    frozen = with_own_layers(std::move(frozen), parse_layer_facts(own->second, kFloatFactsKey, "metadata"));
  }
  check_tap_net(frozen);
  return frozen;
}

}  // namespace onetap
