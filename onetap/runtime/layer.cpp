#include "onetap/runtime/layer.h"

#include <algorithm>

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
    shape.taps = node.method.number("taps");
    shape.share = node.method.number("share");
  }
  return shape;
}

ConvWeights conv_weights(const TapNet& net, const Node& node) {
  const LayerTensors& tensors = net.tensors(node);
  return {tensors.weight.data(), node.op == Op::kTapConv ? tensors.positions.data() : nullptr,
          node.bias ? tensors.bias.data() : nullptr};
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

void subsample(const Node& node, const Shape& in_shape, const float* x, int64_t x_plane, float* y, int64_t y_plane) {
  const int64_t front = (node.out - in_shape[0]) / 2, rows = node.shape[1], columns = node.shape[2];
  for (int64_t c = 0; c < node.out; ++c) {
    float* to = y + c * y_plane;
    if (c < front || c >= front + in_shape[0]) {
      std::fill_n(to, rows * columns, 0.0f);
      continue;
    }
    const float* from = x + (c - front) * x_plane;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        to[row * columns + column] = from[row * node.stride.h * in_shape[2] + column * node.stride.w];
      }
    }
  }
}

}  // namespace onetap
