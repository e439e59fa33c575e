#include "onetap/onnx/layer_facts.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/op.h"
#include "onetap/graph/shift.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/tap/file_limits.h"
#include "onetap/tap/sparse_to_taps.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace onetap {
namespace {

constexpr size_t kMostZeros = size_t{1} << 20;  // of all layers: a reader's limit of JSON is twice that
constexpr int64_t kMostTaps = 1 << 16, kMostExtent = 1 << 10;

Extent2 extent(const nlohmann::json& object, const char* key) {
  const std::vector<int64_t> sides = whole_numbers(object, key);
  const auto in_range = [](int64_t side) { return side >= 1 && side <= kMostExtent; };
  if (sides.size() != 2 || !std::all_of(sides.begin(), sides.end(), in_range)) fail_data("expected rows and columns");
  return {sides[0], sides[1]};
}

LayerFacts facts_of(const nlohmann::json& object) {
  if (!object.is_object()) fail_data("expected an object");
  LayerFacts facts;
  if (object.contains("base")) facts.base = static_cast<float>(json_number(object, "base"));
  if (object.contains("bias_shift")) facts.bias_shift = whole_number(object, "bias_shift");
  if (object.contains("shift")) {
    const nlohmann::json& shift = json_object(object, "shift");
    facts.shift = default_node(Op::kShift);
    facts.shift->kernel = extent(shift, "kernel");
    facts.shift->dilation = extent(shift, "dilation");
    facts.shift->counts = whole_numbers(shift, "counts");
  }
  if (!object.contains("taps")) return facts;
  facts.taps = whole_number(object, "taps", 1);
  const auto share = parse_share(json_string(object, "share"));
  if (!share || facts.taps > kMostTaps) fail_data("expected taps and blocks of a tap convolution");
  facts.share = *share;
  if (object.contains("zeros")) facts.zeros = whole_numbers(object, "zeros");
  return facts;
}

}  // namespace

std::string layer_facts_text(const TapNet& net) {
  nlohmann::json layers = nlohmann::json::object();
  size_t listed = 0;
  for (const Node& node : net.graph.nodes()) {
    if (node.op == Op::kShift) {
      layers[node.name]["shift"] = {{"kernel", {node.kernel.h, node.kernel.w}},
                                    {"dilation", {node.dilation.h, node.dilation.w}},
                                    {"counts", node.counts}};
    }
    const auto found = net.layers.find(node.name);
    if (found == net.layers.end()) continue;
    const LayerTensors& tensors = found->second;
    nlohmann::json facts = nlohmann::json::object();
    if (tensors.weight.dtype() == DType::kI8) {
      facts["base"] = static_cast<double>(tensors.scale.base);
      facts["bias_shift"] = tensors.scale.bias_shift;
    }
    if (node.op == Op::kTapConv) {
      const TapLayout layout = tap_layout(net.graph, node);
      facts["taps"] = layout.taps;
      facts["share"] = share_text(node.method.blocks("share"));
      const std::vector<int64_t> zeros = zero_entries(tensors, layout);
      listed += zeros.size();
      if (!zeros.empty() && listed <= kMostZeros) facts["zeros"] = zeros;
    }
    if (!facts.empty()) layers[node.name] = std::move(facts);
  }
  return json_text(layers);
}

std::map<std::string, LayerFacts> parse_layer_facts(const std::string& text, const char* key, std::string_view label) {
  const auto refuse = [&](const char* what) {
    fail_data("[onnx] metadata '{}': expected facts about layers, got others: {} ({})", key, what, label);
  };
  const nlohmann::json layers = parse_json(text);
  if (!layers.is_object()) refuse("no JSON object");
  std::map<std::string, LayerFacts> facts;
  for (const auto& [name, object] : layers.items()) {
    try {
      facts[name] = facts_of(object);
    } catch (const nlohmann::json::exception& problem) {
      refuse(problem.what());
    } catch (const Error& problem) {
      refuse(problem.what());
    }
  }
  return facts;
}

std::optional<Node> as_shift(const Node& conv, Node shift, const Shape& in, const Tensor& weight) {
  const bool is_depthwise = conv.op == Op::kConv && !conv.bias && conv.groups == conv.out && in.size() == 3 &&
                            conv.out == in[0] && conv.shape == in && weight.dtype() == DType::kF32 &&
                            conv.dilation == Extent2{1, 1} && conv.stride == Extent2{1, 1};
  shift.name = conv.name;
  shift.inputs = conv.inputs;
  try {
    if (!is_depthwise || infer_shape(shift, {in}) != in) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  const Extent2 size = conv.kernel;
  std::vector<float> kernels(weight.count(), 0.0f);
  const std::vector<uint16_t> codes = shift_codes(shift, in[0]);
  for (size_t c = 0; c < codes.size(); ++c) {
    const int64_t down = (codes[c] / shift.kernel.w - shift.kernel.h / 2) * shift.dilation.h;
    const int64_t right = (codes[c] % shift.kernel.w - shift.kernel.w / 2) * shift.dilation.w;
    if (std::abs(down) >= in[1] || std::abs(right) >= in[2]) continue;  // out of the image
    const int64_t row = size.h / 2 + down, column = size.w / 2 + right;
    if (row < 0 || row >= size.h || column < 0 || column >= size.w) return std::nullopt;
    kernels[c * static_cast<size_t>(size.area()) + static_cast<size_t>(row * size.w + column)] = 1;
  }
  if (!std::equal(kernels.begin(), kernels.end(), weight.data<float>())) return std::nullopt;
  return shift;
}

bool as_taps(const LayerFacts& facts, Node& node, LayerTensors& tensors, int64_t& dropped) {
  TapLayout layout;
  layout.outputs = node.out;
  layout.inputs = tensors.weight.shape().size() == 4 ? tensors.weight.shape()[1] : 0;
  layout.positions = node.kernel.area();
  layout.taps = facts.taps;
  if (node.op != Op::kConv || layout.taps > layout.positions) return false;
  share_blocks(layout, facts.share);
  if (layout.share_outputs > layout.outputs || layout.share_inputs > layout.inputs) return false;
  LayerTensors gathered = tensors;
  if (!gather_taps(gathered, layout, facts.zeros) || dropped + layout.dropped > kMaxDroppedWeights) return false;
  tensors = std::move(gathered);
  dropped += layout.dropped;
  node.op = Op::kTapConv;
  node.method = frozen_taps(layout).set("share", facts.share);
  return true;
}

}  // namespace onetap
