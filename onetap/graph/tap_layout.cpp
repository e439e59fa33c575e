#include "onetap/graph/tap_layout.h"

#include "onetap/graph/method_table.h"

#include <algorithm>

namespace onetap {

int64_t TapLayout::slices_of(int64_t set) const {
  const int64_t first_output = set / input_blocks() * share_outputs;
  const int64_t first_input = set % input_blocks() * share_inputs;
  return std::min(share_outputs, outputs - first_output) * std::min(share_inputs, inputs - first_input);
}

int TapLayout::bits() const {
  int bits = 0;
  while ((int64_t{1} << bits) < alphabet()) ++bits;
  return bits;
}

TapLayout tap_layout(const Graph& graph, const Node& node) {
  TapLayout layout;
  layout.outputs = node.out;
  layout.inputs = in_channels(graph, node) / node.groups;
  layout.positions = node.kernel.area();
  if (const auto keep = node.method.info().keep; keep != nullptr) keep(node.method, layout);
  return layout;
}

}  // namespace onetap
