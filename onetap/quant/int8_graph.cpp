#include "onetap/quant/int8_graph.h"

#include "onetap/tap/moved_kernel.h"

namespace onetap {

Graph int8_graph(const Graph& graph) {
  Graph made(graph.name());
  for (Node node : graph.nodes()) {
    if (node.op == Op::kRelu6) node.op = Op::kRelu;
    made.add(std::move(node));
  }
  made.set_output(graph.output());
  return made;
}

TapNet int8_form(const TapNet& net) {
  TapNet made = net;
  active_shifts_to_convs(made);
  made.graph = int8_graph(made.graph);
  return made;
}

}  // namespace onetap
