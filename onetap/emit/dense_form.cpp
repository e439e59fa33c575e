#include "onetap/emit/dense_form.h"

namespace onetap {

TapNet dense_form(const TapNet& net) {
  TapNet dense = net;
  dense.graph = Graph(net.graph.name());
  for (const Node& node : net.graph.nodes()) {
    Node copy = node;
    if (node.op == Op::kTapConv) {
      copy.op = Op::kConv;
      copy.method = Method();
      LayerTensors& tensors = dense.layers[node.name];
      const Shape shape = dense_shape(net.graph, node);
      tensors.weight = tensors.weight.dtype() == DType::kI8 ? Tensor::of(dense_bytes(net, node), shape)
                                                            : Tensor::of(dense_weight(net, node), shape);
      tensors.positions.clear();
    }
    dense.graph.add(copy);
  }
  dense.graph.set_output(net.graph.output());
  return dense;
}

}  // namespace onetap
