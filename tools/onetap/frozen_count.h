// The count of a frozen network, as every verb prints it.
#pragma once

#include "onetap/count/count.h"
#include "onetap/tap/tap_net.h"

namespace onetap::tool {

// Params are 32-bit words. Those of an int8 network are what its file has: a byte for a weight, positions, scales.
NetworkCount count_frozen(const TapNet& net, const CountOptions& options);

}  // namespace onetap::tool
