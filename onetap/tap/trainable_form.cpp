#include "onetap/tap/trainable_form.h"

namespace onetap {

Graph trainable_form(const Graph& frozen) {
  Graph graph(frozen.name());
  for (Node node : frozen.nodes()) {
    if (node.op == Op::kTapConv) node.op = Op::kConv;
    if (node.op == Op::kAffine) node.op = Op::kBatchNorm;
    node.method = Method{};  // of taps, or of one bit
    graph.add(std::move(node));
  }
  graph.set_output(frozen.output());
  return graph;
}

}  // namespace onetap
