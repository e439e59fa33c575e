#include "onetap/tap/tap_net.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"

namespace onetap {
namespace {

void check_length(const Node& node, const char* what, size_t length, const Shape& shape) {
  const size_t expected = shape.empty() ? 0 : static_cast<size_t>(element_count(shape));
  if (length != expected) {
    fail_data("[tap] expected {} values of {}, got {} ({})", expected, what, length, node.name);
  }
}

void check_positions(const Node& node, const std::vector<uint16_t>& positions) {
  if (node.op != Op::kTapConv) return;
  const int64_t limit = node.kernel.area();
  const auto taps = static_cast<size_t>(node.method.number("taps"));
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] >= limit) {
      fail_data("[tap] expected {}x{} positions < {}, got {} ({})", node.kernel.h, node.kernel.w, limit, positions[i],
                node.name);
    }
    if (i % taps != 0 && positions[i] <= positions[i - 1]) {
      fail_data("[tap] expected ascending positions in a slice, got {} after {} ({})", positions[i], positions[i - 1],
                node.name);
    }
  }
}

}  // namespace

const char* weight_type_name(WeightType type) {
  return type == WeightType::kF16 ? "f16" : "f32";
}

LayerShapes layer_shapes(const Graph& graph, const Node& node) {
  LayerShapes shapes;
  switch (node.op) {
    case Op::kConv:
      shapes.weight = {node.out, in_channels(graph, node) / node.groups, node.kernel.h, node.kernel.w};
      break;
    case Op::kTapConv: {
      const int64_t in = in_channels(graph, node) / node.groups;
      shapes.weight = {node.out, in, node.method.number("taps")};
      shapes.positions = {share_groups(node.out, node.method.number("share")), in, node.method.number("taps")};
      break;
    }
    case Op::kLinear:
      shapes.weight = {node.out, in_channels(graph, node)};
      break;
    case Op::kAffine:
      shapes.weight = shapes.bias = {node.shape[0]};
      break;
    default:
      break;
  }
  if (node.bias) shapes.bias = {node.out};
  return shapes;
}

void check_tap_net(const TapNet& net) {
  net.graph.input();
  size_t with_tensors = 0;
  for (const Node& node : net.graph.nodes()) {
    if (node.op == Op::kBatchNorm) fail_data("[tap] expected inference ops alone, got bn '{}'", node.name);
    if (node.op == Op::kConv && !node.method.is_dense()) {
      fail_data("[tap] expected inference ops alone, got a trainable {} conv '{}'", node.method.name(), node.name);
    }
    const LayerShapes shapes = layer_shapes(net.graph, node);
    if (shapes.weight.empty()) continue;
    ++with_tensors;
    const auto found = net.layers.find(node.name);
    if (found == net.layers.end()) fail_data("[tap] expected tensors for '{}', got none", node.name);
    check_length(node, "weight", found->second.weight.size(), shapes.weight);
    check_length(node, "bias", found->second.bias.size(), shapes.bias);
    check_length(node, "positions", found->second.positions.size(), shapes.positions);
    check_positions(node, found->second.positions);
  }
  if (net.layers.size() != with_tensors) {
    fail_data("[tap] expected tensors of {} layers, got {}", with_tensors, net.layers.size());
  }
  const int64_t outputs = element_count(net.graph.node(net.graph.output()).shape);
  if (!net.classes.empty() && static_cast<int64_t>(net.classes.size()) != outputs) {
    fail_data("[tap] expected names for {} classes, got {}", outputs, net.classes.size());
  }
}

std::vector<float> dense_weight(const TapNet& net, const Node& node) {
  const LayerTensors& tensors = net.tensors(node);
  if (node.op != Op::kTapConv) return tensors.weight;
  const int64_t in = in_channels(net.graph, node) / node.groups, area = node.kernel.area();
  const int64_t taps = node.method.number("taps"), share = node.method.number("share");
  std::vector<float> dense(static_cast<size_t>(node.out * in * area), 0.0f);
  for (int64_t d = 0; d < node.out; ++d) {
    for (int64_t c = 0; c < in; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        const uint16_t at = tensors.positions[static_cast<size_t>(((d / share) * in + c) * taps + t)];
        dense[static_cast<size_t>((d * in + c) * area + at)] =
            tensors.weight[static_cast<size_t>((d * in + c) * taps + t)];
      }
    }
  }
  return dense;
}

Shape dense_shape(const Graph& graph, const Node& node) {
  Shape shape = layer_shapes(graph, node).weight;
  if (node.op != Op::kTapConv) return shape;
  return {shape[0], shape[1], node.kernel.h, node.kernel.w};
}

std::vector<int64_t> kept_counts(const TapNet& net, const Node& node) {
  std::vector<int64_t> counts(static_cast<size_t>(node.kernel.area()), 0);
  for (const uint16_t position : net.tensors(node).positions) ++counts[position];
  return counts;
}

}  // namespace onetap
