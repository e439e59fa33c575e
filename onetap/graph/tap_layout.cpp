#include "onetap/graph/tap_layout.h"

namespace onetap {

TapLayout tap_layout(const Graph& graph, const Node& node) {
  TapLayout layout;
  layout.outputs = node.out;
  layout.inputs = in_channels(graph, node) / node.groups;
  layout.positions = node.kernel.area();
  layout.taps = node.method.taps;
  layout.share_outputs = node.method.share;
  return layout;
}

}  // namespace onetap
