// Which way the channels of a shift op move.
#pragma once

#include "onetap/graph/graph.h"

#include <cstdint>
#include <vector>

namespace onetap {

// For each of `channels`, the position of the kernel (rows first, as TapLayout's codes) that it is read at: channel c
// of the result is channel c of the input at (row + code / k - k / 2, column + code % k - k / 2), times the dilation.
//
// Without counts this is the table of Wu et al.: channel c reads position c mod k², and channels that do not fill a
// whole round stay where they are. With counts, so many neighbouring channels read each position, in order.
std::vector<uint16_t> shift_codes(const Node& node, int64_t channels);

// `channels` divided by these proportions (of any sum above 0), to whole numbers that add up: largest remainders first.
std::vector<int64_t> divide_channels(int64_t channels, const std::vector<double>& proportions);

}  // namespace onetap
