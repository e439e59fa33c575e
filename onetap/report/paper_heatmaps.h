// The published heat maps of kept taps, as the paper's figures print them.
#pragma once

#include "onetap/report/heatmap.h"

#include <string_view>
#include <vector>

namespace onetap {

// Of "resnet20", "resnet20-centre" (logits that start with the centre ahead), "resnet56" or "resnet20-5x5": the first
// four and the last four layers. The figures have shades and the ends of their scale. Shares read that way miss a sum
// of 1 by up to a tenth, so each map is scaled to it.
std::vector<PositionShares> paper_heatmaps(std::string_view name);

}  // namespace onetap
