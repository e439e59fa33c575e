#include "onetap/onnx/int8_facts.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/graph/op.h"
#include "onetap/graph/tap_layout.h"
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

Int8LayerFacts layer_facts(const nlohmann::json& object) {
  if (!object.is_object()) fail_data("expected an object");
  Int8LayerFacts facts;
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

std::string int8_facts_text(const TapNet& net) {
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

std::map<std::string, Int8LayerFacts> parse_int8_facts(const std::string& text, std::string_view label) {
  const auto refuse = [&](const char* what) {
    fail_data("[onnx] metadata '{}': expected facts about layers, got others: {} ({})", kInt8FactsKey, what, label);
  };
  const nlohmann::json layers = parse_json(text);
  if (!layers.is_object()) refuse("no JSON object");
  std::map<std::string, Int8LayerFacts> facts;
  for (const auto& [name, object] : layers.items()) {
    try {
      facts[name] = layer_facts(object);
    } catch (const nlohmann::json::exception& problem) {
      refuse(problem.what());
    } catch (const Error& problem) {
      refuse(problem.what());
    }
  }
  return facts;
}

}  // namespace onetap
