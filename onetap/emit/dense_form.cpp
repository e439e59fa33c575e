#include "onetap/emit/dense_form.h"

#include "onetap/graph/op.h"
#include "onetap/graph/tap_layout.h"

namespace onetap {
namespace {

template <typename T>
Tensor spread(const TapLayout& layout, const LayerTensors& tensors, const Shape& shape) {
  std::vector<T> dense(static_cast<size_t>(element_count(shape)), T{0});
  const T* weight = tensors.weight.data<T>();
  for (int64_t d = 0; d < layout.outputs; ++d) {
    for (int64_t c = 0; c < layout.inputs; ++c) {
      const int64_t slice = d * layout.inputs + c;
      for (int64_t t = 0; t < layout.taps; ++t) {
        const int64_t position = tensors.positions[static_cast<size_t>(layout.first_code(d, c) + t)];
        if (position == layout.none()) continue;
        dense[static_cast<size_t>(slice * layout.positions + position)] = weight[slice * layout.taps + t];
      }
    }
  }
  return Tensor::of(dense, shape);
}

}  // namespace

TapNet dense_form(const TapNet& net) {
  TapNet dense = net;
  dense.graph = Graph(net.graph.name());
  for (const Node& node : net.graph.nodes()) {
    Node copy = node;
    if (node.op == Op::kTapConv) {
      copy.op = Op::kConv;
      copy.method = Method();
      const TapLayout layout = tap_layout(net.graph, node);
      LayerTensors& tensors = dense.layers[node.name];
      const Shape shape = dense_shape(net.graph, node);
      tensors.weight = tensors.weight.dtype() == DType::kI8 ? spread<int8_t>(layout, tensors, shape)
                                                            : spread<float>(layout, tensors, shape);
      tensors.positions.clear();
    }
    dense.graph.add(copy);
  }
  dense.graph.set_output(net.graph.output());
  return dense;
}

}  // namespace onetap
