// Cutting channels out of a network: which convolutions can lose some, and what is left of every node then.
#pragma once

#include "onetap/graph/graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace onetap {

// Output channels that stay, ascending, by the conv that makes them. Convs that are not there keep all.
using ChannelPlan = std::map<std::string, std::vector<int64_t>>;

// Channels of the network before the cut that stay. Of vectors, the values.
struct KeptChannels {
  std::vector<int64_t> inputs;  // of the node's first input
  std::vector<int64_t> outputs;
};

struct ChannelCut {
  Graph graph;                               // the smaller network: the same nodes by the same names
  std::map<std::string, KeptChannels> kept;  // by node
};

// Convolutions whose outputs can be cut without a thought for any other: all that reads them, through batch norms,
// pools, concatenations and depthwise convolutions, is convolutions and linear layers. In residual networks these are
// the inner convolutions of every block. In the order of the network.
std::vector<std::string> cuttable_convs(const Graph& graph);

// The network without the channels that are not in the plan. kUsage if a list of the plan is not what it should be, if
// an add would meet channels that do not correspond, if a layer is cut that has a method other than `conv`, or if the
// result of the network would change its size.
ChannelCut cut_channels(const Graph& graph, const ChannelPlan& plan);

}  // namespace onetap
