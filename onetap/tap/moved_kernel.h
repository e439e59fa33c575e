// Shifts and active shifts as depthwise convolutions, for whoever has no other form of them.
#pragma once

#include "onetap/base/plane_taps.h"
#include "onetap/graph/graph.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <vector>

namespace onetap {

// The kernel of a shift or an active shift, as large as its furthest tap that reaches the image.
struct MovedKernel {
  // `centred`: as far up as down, and to the left as to the right.
  MovedKernel(const TapNet& net, const Node& node, bool centred);

  Extent2 size() const { return {up + down + 1, left + right + 1}; }
  std::vector<float> weights() const;  // [channels, 1, rows, columns]

  PlaneTaps taps;
  int64_t up = 0, down = 0, left = 0, right = 0;  // how far taps lie from the pixel, which is the padding too
};

// Every active shift of a network of floats becomes such a convolution of the same name, with taps where its kernel is
// mostly zeros: four weights a channel at most. The network computes the same. kData if a shift is longer than a kernel
// can reach: 31 pixels within the image.
void active_shifts_to_convs(TapNet& net);

}  // namespace onetap
