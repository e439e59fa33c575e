// A trained network without the channels that a plan cuts.
#pragma once

#include "onetap/graph/channels.h"
#include "onetap/nn/graph_module.h"

namespace onetap {

// A module of cut.graph with the weights, biases and statistics of the channels that stay, on the same device. `module`
// runs the network that was cut, and stays as it is.
nn::GraphModule cut_module(const nn::GraphModule& module, const ChannelCut& cut);

}  // namespace onetap
