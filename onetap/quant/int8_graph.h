// The graph of a network in int8, made of the one that it has in floats.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/tap/tap_net.h"

namespace onetap {

// ReLU6s become ReLUs. Bytes end at 255: where the scale is at most 6/255 they end where the ReLU6 does or, if no value
// of the calibration came near 6, where those values end. quantize_net() refuses larger scales.
Graph int8_graph(const Graph& graph);

// A network of floats with such a graph, and with depthwise convolutions for active shifts. Nodes keep their names.
TapNet int8_form(const TapNet& net);

}  // namespace onetap
