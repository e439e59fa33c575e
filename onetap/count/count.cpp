#include "onetap/count/count.h"

#include "onetap/graph/method_table.h"
#include "onetap/graph/tap_layout.h"

#include <algorithm>

namespace onetap {
namespace {

double as_double(int64_t value) {
  return static_cast<double>(value);
}

void count_conv(const Graph& graph, const Node& node, CountRules rules, LayerCount& count) {
  const MethodInfo& method = node.method.info();
  const TapLayout layout = tap_layout(graph, node);
  // A frozen layer has no form in training left to count.
  const bool finished = node.op == Op::kTapConv || rules == CountRules::kPaper;
  const bool kept_only = node.is_pruned() && finished;
  const double weights = as_double(layout.slices() * (kept_only ? layout.taps : layout.positions));

  count.params = finished ? weights * method.weight_bits / 32.0 : weights;
  if (node.bias) count.params += as_double(node.out);
  if (kept_only) count.params += as_double(layout.codes()) * layout.bits() / 32.0;
  if (!finished && method.extra_parameters != nullptr) count.params += as_double(method.extra_parameters(graph, node));
  count.macs = weights * as_double(node.shape[1] * node.shape[2]);
}

// A batch norm whose conv is a 1x1 projection of a shortcut, told by torchvision's name for it.
bool ends_projection(const Graph& graph, const Node& node) {
  const Node& conv = graph.source(node);
  return conv.op == Op::kConv && conv.kernel.area() == 1 && conv.name.find("downsample") != std::string::npos;
}

bool counts_activations(const Graph& graph, const Node& node, CountRules rules, ShortcutRule shortcuts) {
  switch (node.op) {
    case Op::kConv:
    case Op::kTapConv:
    case Op::kLinear:
      return true;
    case Op::kBatchNorm:
      return rules == CountRules::kPaper && (shortcuts == ShortcutRule::kTwice || !ends_projection(graph, node));
    case Op::kInput:
    case Op::kAffine:
    case Op::kGlobalAvgPool:
      return rules == CountRules::kPaper;
    default:
      return false;
  }
}

ShortcutRule settle(const Graph& graph, ShortcutRule rule) {
  if (rule != ShortcutRule::kAuto) return rule;
  const auto& nodes = graph.nodes();
  const bool pruned = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.is_pruned(); });
  return pruned ? ShortcutRule::kOnce : ShortcutRule::kTwice;
}

}  // namespace

NetworkCount count_network(const Graph& graph, const CountOptions& options) {
  const ShortcutRule shortcuts = settle(graph, options.shortcuts);
  NetworkCount total;
  for (const Node& node : graph.nodes()) {
    LayerCount count;
    count.name = node.name;
    switch (node.op) {
      case Op::kConv:
      case Op::kTapConv:
        count_conv(graph, node, options.rules, count);
        break;
      case Op::kBatchNorm:
      case Op::kAffine:
        count.params = 2.0 * as_double(node.shape[0]);
        break;
      case Op::kLinear:
        count.macs = as_double(in_channels(graph, node) * node.out);
        count.params = count.macs + (node.bias ? as_double(node.out) : 0.0);
        break;
      default:
        break;
    }
    if (counts_activations(graph, node, options.rules, shortcuts)) {
      count.activations = as_double(element_count(node.shape));
    }
    total.params += count.params;
    total.macs += count.macs;
    total.activations += count.activations;
    total.layers.push_back(std::move(count));
  }
  return total;
}

}  // namespace onetap
