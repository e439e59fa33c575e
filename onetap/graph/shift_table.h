// Fixed shifts in the proportions of taps that another network has learned.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <vector>

namespace onetap {

// How often the slices of a layer keep each position of its kernel, rows first, at any scale.
struct TapShares {
  std::string layer;
  Extent2 kernel;
  std::vector<double> shares;
};

// Gives every `shift` of the graph the counts of the layer that it stands for: the one of the same name (shift1 for
// conv1), else the one at the same depth among the layers of the same kernel. kUsage if the graph has no shift, kData
// if no layer has its kernel.
void set_shift_table(Graph& graph, const std::vector<TapShares>& learned);

}  // namespace onetap
