#include "onetap/count/count.h"

#include "onetap/graph/method_table.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/graph/uses.h"

#include <algorithm>

namespace onetap {
namespace {

double as_double(int64_t value) {
  return static_cast<double>(value);
}

bool has_weights(Op op) {
  return op == Op::kConv || op == Op::kTapConv || op == Op::kLinear;
}

// Of a layer with weights: conv, tapconv or linear, which is a 1x1 of one pixel.
void count_weights(const Graph& graph, const Node& node, CountRules rules, LayerCount& count) {
  const MethodInfo& method = node.method.info();
  const TapLayout layout = tap_layout(graph, node);
  // A frozen layer has no form in training left to count.
  const bool is_frozen = node.op == Op::kTapConv || find_frozen_method(method.name) != nullptr;
  const bool finished = is_frozen || rules == CountRules::kPaper;
  const bool kept_only = node.is_pruned() && finished;
  const double weights = as_double(kept_only ? layout.kept_weights() : layout.slices() * layout.positions);

  count.params = finished ? weights * method.weight_bits / 32.0 : weights;
  if (node.bias) count.params += as_double(node.out);
  if (method.has_scales) count.params += as_double(node.out);
  if (kept_only) count.params += as_double(layout.codes()) * layout.bits() / 32.0;
  if (!finished && method.extra_parameters != nullptr) count.params += as_double(method.extra_parameters(graph, node));
  count.macs = weights * as_double(element_count(node.shape) / node.out);
}

// Parameters and multiplications. Every op is named, in this switch and in the next: a new one does not compile before
// it is decided what it costs.
void count_costs(const Graph& graph, const Node& node, CountRules rules, LayerCount& count) {
  switch (node.op) {
    case Op::kConv:
    case Op::kTapConv:
    case Op::kLinear:
      count_weights(graph, node, rules, count);
      break;
    case Op::kBatchNorm:
    case Op::kAffine:
    case Op::kActiveShift:
      count.params = 2.0 * as_double(node.shape[0]);  // scale and shift of a channel, or its two distances
      break;
    case Op::kInput:
    case Op::kRelu:
    case Op::kRelu6:
    case Op::kSigmoid:
    case Op::kHardSigmoid:
    case Op::kHardSwish:
    case Op::kSilu:
    case Op::kAdd:
    case Op::kMul:
    case Op::kConcat:
    case Op::kPad:
    case Op::kAvgPool:
    case Op::kMaxPool:
    case Op::kGlobalAvgPool:
    case Op::kSubsample:
    case Op::kFlatten:
    case Op::kShift:
      break;  // no parameters, and no multiplications by these rules
  }
}

// The activations of a node by the paper's rules.
class PaperActivations {
 public:
  PaperActivations(const Graph& graph, ShortcutRule shortcuts) : graph_(graph), uses_(graph), shortcuts_(shortcuts) {}

  double of(const Node& node) const { return as_double(values(node) * element_count(node.shape)); }

 private:
  // How many values of the node's shape there are to keep.
  int64_t values(const Node& node) const {
    switch (node.op) {
      case Op::kInput:
      case Op::kConv:
      case Op::kTapConv:
      case Op::kLinear:
      case Op::kAffine:
      case Op::kGlobalAvgPool:
      case Op::kActiveShift:
        return 1;
      case Op::kBatchNorm:
        return is_projection(node) && (shortcuts_ == ShortcutRule::kOnce || is_part_of_kept_sum(node)) ? 0 : 1;
      case Op::kAdd:
        return is_kept_sum(node) ? operands_beside_projections(node) : 0;
      // In the place of their first input.
      case Op::kRelu:
      case Op::kRelu6:
      case Op::kSigmoid:
      case Op::kHardSigmoid:
      case Op::kHardSwish:
      case Op::kSilu:
      case Op::kMul:
      // Values that are counted where they are made, read elsewhere.
      case Op::kConcat:
      case Op::kPad:
      case Op::kSubsample:
      case Op::kFlatten:
      case Op::kShift:
      // The paper's point of SqueezeNet is met with the pools of windows left out; that of ResNet-20 with the mean over
      // the image counted.
      case Op::kMaxPool:
      case Op::kAvgPool:
        return 0;
    }
    return 0;  // every op returns
  }

  // A 1x1 convolution of a shortcut, told by torchvision's name for it, or the batch norm after one.
  bool is_projection(const Node& node) const {
    const Node& conv = node.op == Op::kBatchNorm ? graph_.source(node) : node;
    return conv.op == Op::kConv && conv.kernel.area() == 1 && conv.name.find("downsample") != std::string::npos;
  }

  // A sum that a ReLU takes on in place is none; one that stays as it is (MobileNetV2, pre-activation) is kept.
  bool is_kept_sum(const Node& node) const {
    const Node* reader = uses_.only_reader(node);
    return reader == nullptr || reader->op != Op::kRelu;
  }

  bool is_part_of_kept_sum(const Node& node) const {
    const Node* reader = uses_.only_reader(node);
    return reader != nullptr && reader->op == Op::kAdd && is_kept_sum(*reader);
  }

  // The sum and the values that wait for it: a projection has been counted.
  int64_t operands_beside_projections(const Node& sum) const {
    const auto projections = std::count_if(sum.inputs.begin(), sum.inputs.end(),
                                           [&](const std::string& input) { return is_projection(graph_.node(input)); });
    return static_cast<int64_t>(sum.inputs.size()) - projections;
  }

  const Graph& graph_;
  Uses uses_;
  ShortcutRule shortcuts_;
};

ShortcutRule settle(const Graph& graph, ShortcutRule rule) {
  if (rule != ShortcutRule::kAuto) return rule;
  const auto& nodes = graph.nodes();
  const bool pruned = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.is_pruned(); });
  return pruned ? ShortcutRule::kOnce : ShortcutRule::kTwice;
}

}  // namespace

NetworkCount count_network(const Graph& graph, const CountOptions& options) {
  const PaperActivations paper(graph, settle(graph, options.shortcuts));
  NetworkCount total;
  int64_t pruned = 0, dropped = 0;  // weights of slices that keep `taps` each
  for (const Node& node : graph.nodes()) {
    LayerCount count;
    count.name = node.name;
    count_costs(graph, node, options.rules, count);
    if (has_weights(node.op)) {
      const TapLayout layout = tap_layout(graph, node);
      if (options.rules == CountRules::kPaper || node.op == Op::kTapConv) {
        count.empty = as_double(layout.dropped) / as_double(layout.weights());
        dropped += layout.dropped;
      }
      if (node.is_pruned()) pruned += layout.weights();
    }
    if (options.rules == CountRules::kPaper) {
      count.activations = paper.of(node);
    } else if (has_weights(node.op)) {
      count.activations = as_double(element_count(node.shape));
    }
    total.params += count.params;
    total.macs += count.macs;
    total.activations += count.activations;
    total.layers.push_back(std::move(count));
  }
  if (pruned > 0) total.empty = as_double(dropped) / as_double(pruned);
  return total;
}

}  // namespace onetap
