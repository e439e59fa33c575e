#include "onetap/graph/channels.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/graph/shift.h"
#include "onetap/graph/uses.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace onetap {
namespace {

using Channels = std::vector<int64_t>;

Channels every_channel(int64_t count) {
  Channels channels(static_cast<size_t>(count));
  std::iota(channels.begin(), channels.end(), int64_t{0});
  return channels;
}

// Each group reads one channel: its outputs go where that channel goes.
bool reads_one_each(const Graph& graph, const Node& node) {
  return node.op == Op::kConv && node.groups > 1 && node.groups == in_channels(graph, node);
}

// Whether channels of this value may go as far as the reader is concerned; `freely` says it of the reader's own value.
bool lets_go(const Graph& graph, const Node& reader, bool freely) {
  switch (reader.op) {
    case Op::kConv:
      return reader.groups == 1 || (reads_one_each(graph, reader) && freely);
    case Op::kLinear:
      return true;
    case Op::kBatchNorm:
    case Op::kRelu:
    case Op::kRelu6:
    case Op::kSigmoid:
    case Op::kHardSigmoid:
    case Op::kHardSwish:
    case Op::kSilu:
    case Op::kPad:
    case Op::kConcat:
    case Op::kAvgPool:
    case Op::kMaxPool:
    case Op::kGlobalAvgPool:
    case Op::kFlatten:
    case Op::kActiveShift:
      return freely;
    case Op::kShift:
      return freely && !reader.counts.empty();  // else a channel's place decides where it moves
    default:
      return false;
  }
}

class Cutter {
 public:
  Cutter(const Graph& graph, const ChannelPlan& plan) : graph_(graph), plan_(plan) {}

  ChannelCut cut() {
    check_plan();
    ChannelCut result;
    result.graph = Graph(graph_.name());
    for (const Node& node : graph_.nodes()) {
      KeptChannels& kept = kept_[node.name];
      if (!node.inputs.empty()) kept.inputs = kept_.at(node.inputs[0]).outputs;
      kept.outputs = outputs(node);
      result.graph.add(smaller(node, kept));
    }
    result.graph.set_output(graph_.output());
    if (is_cut(graph_.node(graph_.output()))) {
      fail_usage("[graph] expected all channels of '{}' to stay, which is the result of {}, got {} of {}",
                 graph_.output(), graph_.name(), kept_.at(graph_.output()).outputs.size(),
                 graph_.node(graph_.output()).shape[0]);
    }
    result.kept = std::move(kept_);
    return result;
  }

 private:
  bool is_cut(const Node& node) const {
    return static_cast<int64_t>(kept_.at(node.name).outputs.size()) != node.shape[0];
  }

  void check_plan() const {
    for (const auto& [name, channels] : plan_) {
      const Node* node = graph_.find(name);
      if (node == nullptr || node->op != Op::kConv) {
        fail_usage("[graph] expected a conv of {} to cut channels of, got '{}'", graph_.name(), name);
      }
      if (reads_one_each(graph_, *node)) {
        fail_usage("[graph] {}: a depthwise convolution has the channels of its input; cut the conv before it", name);
      }
      const bool rising =
          std::adjacent_find(channels.begin(), channels.end(), std::greater_equal<int64_t>()) == channels.end();
      if (channels.empty() || !rising || channels.front() < 0 || channels.back() >= node->out) {
        fail_usage("[graph] {}: expected one or more of its channels 0..{} in ascending order", name, node->out - 1);
      }
    }
  }

  // What stays of a node's value, once that of its inputs is known.
  Channels outputs(const Node& node) const {
    const auto source = [&](size_t i) -> const Channels& { return kept_.at(node.inputs[i]).outputs; };
    switch (node.op) {
      case Op::kInput:
      case Op::kLinear:
        return every_channel(node.shape[0]);
      case Op::kConv:
      case Op::kTapConv:
        return conv_outputs(node, source(0));
      case Op::kAdd:
      case Op::kMul:
        for (size_t i = 1; i < node.inputs.size(); ++i) {
          if (source(i) != source(0)) refuse_add(node, i);
        }
        return source(0);
      case Op::kConcat:
        return joined(node);
      case Op::kSubsample:
        return padded(node, source(0));
      case Op::kFlatten:
        return flattened(node, source(0));
      case Op::kBatchNorm:
      case Op::kRelu:
      case Op::kRelu6:
      case Op::kSigmoid:
      case Op::kHardSigmoid:
      case Op::kHardSwish:
      case Op::kSilu:
      case Op::kPad:
      case Op::kAvgPool:
      case Op::kMaxPool:
      case Op::kGlobalAvgPool:
      case Op::kShift:
      case Op::kActiveShift:
      case Op::kAffine:
        return source(0);
    }
    fail("[graph] {}: op without a rule for cut channels", node.name);
  }

  Channels conv_outputs(const Node& node, const Channels& inputs) const {
    if (reads_one_each(graph_, node)) {
      const int64_t each = node.out / node.groups;
      Channels channels;
      for (const int64_t input : inputs) {
        for (int64_t i = 0; i < each; ++i) channels.push_back(input * each + i);
      }
      return channels;
    }
    const auto planned = plan_.find(node.name);
    return planned == plan_.end() ? every_channel(node.out) : planned->second;
  }

  [[noreturn]] void refuse_add(const Node& node, size_t other) const {
    const auto text = [&](size_t i) {
      return fmt::format("{} of {} of '{}'", kept_.at(node.inputs[i]).outputs.size(),
                         graph_.node(node.inputs[i]).shape[0], node.inputs[i]);
    };
    fail_usage("[graph] {}: expected the same channels to stay of all that it adds, got {} and {}", node.name, text(0),
               text(other));
  }

  Channels joined(const Node& node) const {
    Channels channels;
    int64_t offset = 0;
    for (const std::string& input : node.inputs) {
      for (const int64_t channel : kept_.at(input).outputs) channels.push_back(offset + channel);
      offset += graph_.node(input).shape[0];
    }
    return channels;
  }

  // The zeros before and behind stay.
  Channels padded(const Node& node, const Channels& inputs) const {
    const int64_t in = graph_.source(node).shape[0], front = (node.out - in) / 2;
    Channels channels = every_channel(front);
    for (const int64_t channel : inputs) channels.push_back(front + channel);
    for (int64_t channel = front + in; channel < node.out; ++channel) channels.push_back(channel);
    return channels;
  }

  Channels flattened(const Node& node, const Channels& inputs) const {
    const int64_t plane = node.shape[0] / graph_.source(node).shape[0];
    Channels values;
    for (const int64_t channel : inputs) {
      for (int64_t i = 0; i < plane; ++i) values.push_back(channel * plane + i);
    }
    return values;
  }

  Node smaller(Node node, const KeptChannels& kept) const {
    const bool has_weights = node.op == Op::kConv || node.op == Op::kLinear || node.op == Op::kTapConv;
    const bool loses = is_cut(node) || (!node.inputs.empty() && is_cut(graph_.source(node)));
    if (!loses) return node;
    if (has_weights && (node.op == Op::kTapConv || !node.method.is_dense())) {
      fail_usage("[graph] {}: expected a dense layer where channels are cut, got {}", node.name,
                 node.op == Op::kTapConv ? "a frozen one" : "method=" + node.method.name());
    }
    if (node.op == Op::kShift) cut_shift(node, kept.inputs);
    if (node.op == Op::kConv && node.groups > 1) cut_groups(node, kept);
    if (node.op == Op::kConv || node.op == Op::kSubsample) node.out = static_cast<int64_t>(kept.outputs.size());
    return node;
  }

  // Every channel must move as it did.
  void cut_shift(Node& node, const Channels& inputs) const {
    const std::vector<uint16_t> before = shift_codes(node, node.shape[0]);
    std::vector<uint16_t> expected;
    for (const int64_t input : inputs) expected.push_back(before[static_cast<size_t>(input)]);
    if (!node.counts.empty()) {
      std::fill(node.counts.begin(), node.counts.end(), 0);
      for (const uint16_t code : expected) ++node.counts[code];
    }
    if (shift_codes(node, static_cast<int64_t>(inputs.size())) != expected) {
      fail_usage("[graph] {}: a channel's place decides where it moves: channels of '{}' cannot be cut", node.name,
                 node.inputs[0]);
    }
  }

  // Groups that lost everything go; the others must stay alike.
  void cut_groups(Node& node, const KeptChannels& kept) const {
    const int64_t in_each = in_channels(graph_, node) / node.groups, out_each = node.out / node.groups;
    std::vector<std::pair<int64_t, int64_t>> sizes(static_cast<size_t>(node.groups));
    for (const int64_t input : kept.inputs) ++sizes[static_cast<size_t>(input / in_each)].first;
    for (const int64_t output : kept.outputs) ++sizes[static_cast<size_t>(output / out_each)].second;
    sizes.erase(std::remove(sizes.begin(), sizes.end(), std::pair<int64_t, int64_t>{}), sizes.end());
    const bool alike = std::set(sizes.begin(), sizes.end()).size() == 1;
    if (!alike || sizes[0].first == 0 || sizes[0].second == 0) {
      fail_usage("[graph] {}: expected each of its {} groups to lose as many channels as the others", node.name,
                 node.groups);
    }
    node.groups = static_cast<int64_t>(sizes.size());
  }

  const Graph& graph_;
  const ChannelPlan& plan_;
  std::map<std::string, KeptChannels> kept_;
};

}  // namespace

std::vector<std::string> cuttable_convs(const Graph& graph) {
  const Uses uses(graph);
  std::vector<bool> freely(graph.nodes().size(), false);
  std::vector<std::string> names;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    const auto& readers = uses.readers(node);
    freely[i] = !uses.is_output(node) && std::all_of(readers.begin(), readers.end(), [&](const Node* reader) {
      return lets_go(graph, *reader, freely[uses.index_of(reader->name)]);
    });
    if (freely[i] && node.op == Op::kConv && node.groups == 1) names.push_back(node.name);
  }
  std::reverse(names.begin(), names.end());
  return names;
}

ChannelCut cut_channels(const Graph& graph, const ChannelPlan& plan) {
  return Cutter(graph, plan).cut();
}

}  // namespace onetap
