// Li et al., "Pruning Filters for Efficient ConvNets": filters with small weights go.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/prune/select.h"

#include <string>
#include <vector>

namespace onetap {

// The sum of |w| of every filter of these dense convolutions.
std::vector<LayerScores> score_l1(const nn::GraphModule& module, const std::vector<std::string>& convs);

}  // namespace onetap
