#include "onetap/runtime/layer.h"

#include "onetap/graph/tap_layout.h"
#include "onetap/kernels/aligned.h"

namespace onetap {
namespace {

Window window(const Node& node) {
  return {node.kernel.h, node.kernel.w, node.stride.h, node.stride.w, node.padding.h, node.padding.w};
}

}  // namespace

ConvShape conv_shape(const Graph& graph, const Node& node) {
  const Shape& in = graph.source(node).shape;
  ConvShape shape;
  shape.in = in[0];
  shape.in_h = in[1];
  shape.in_w = in[2];
  shape.out = node.out;
  static_cast<Window&>(shape) = window(node);
  shape.dilation_h = node.dilation.h;
  shape.dilation_w = node.dilation.w;
  shape.groups = node.groups;
  if (node.op == Op::kTapConv) {
    const TapLayout layout = tap_layout(graph, node);
    shape.taps = layout.taps;
    shape.share_outputs = layout.share_outputs;
    shape.share_inputs = layout.share_inputs;
    shape.may_be_empty = layout.may_be_empty;
  }
  return shape;
}

ConvWeights conv_weights(const TapNet& net, const Node& node) {
  const LayerTensors& tensors = net.tensors(node);
  return {floats_of(node, tensors.weight), node.op == Op::kTapConv ? tensors.positions.data() : nullptr,
          floats_of(node, tensors.bias)};
}

PoolShape pool_shape(const Graph& graph, const Node& node) {
  const Shape& in = graph.source(node).shape;
  PoolShape shape;
  shape.channels = in[0];
  shape.in_h = in[1];
  shape.in_w = in[2];
  shape.out_h = node.shape[1];
  shape.out_w = node.shape[2];
  static_cast<Window&>(shape) = window(node);
  shape.is_max = node.op == Op::kMaxPool;
  return shape;
}

PlanOptions plan_options() {
  PlanOptions options;
  options.dtype = DType::kF32;
  options.alignment = kLineBytes;
  options.odd_plane_stride = true;
  return options;
}

}  // namespace onetap
