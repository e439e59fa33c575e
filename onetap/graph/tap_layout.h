// The TapLayout of a node: the one place that knows which attributes of a network make it.
#pragma once

#include "onetap/base/tap_layout.h"
#include "onetap/graph/graph.h"

namespace onetap {

// Of a convolution that keeps taps, now or once it is frozen (Node::is_pruned).
TapLayout tap_layout(const Graph& graph, const Node& node);
// Of one outside of a graph, which reads so many channels.
TapLayout tap_layout(const Node& node, int64_t in_channels);

}  // namespace onetap
