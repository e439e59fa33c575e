// Which pixels the channels of a shift or an active shift are made of.
#pragma once

#include "onetap/base/plane_taps.h"
#include "onetap/tap/tap_net.h"

namespace onetap {

// Of every channel: one tap of a shift, up to four of an active shift (its neighbours and their bilinear weights). Taps
// of weight 0, and those that lie outside of the image wherever they are read, are left out.
PlaneTaps moved_taps(const TapNet& net, const Node& node);

}  // namespace onetap
