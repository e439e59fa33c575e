#include "onetap/graph/tap_layout.h"

#include "onetap/graph/method_table.h"

namespace onetap {

TapLayout tap_layout(const Graph& graph, const Node& node) {
  return tap_layout(node, in_channels(graph, node));
}

TapLayout tap_layout(const Node& node, int64_t in_channels) {
  TapLayout layout;
  layout.outputs = node.out;
  layout.inputs = in_channels / node.groups;
  layout.positions = node.kernel.area();
  if (const auto keep = node.method.info().keep; keep != nullptr) keep(node.method, layout);
  return layout;
}

}  // namespace onetap
