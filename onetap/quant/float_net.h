// The network of floats that an int8 network stands for.
#pragma once

#include "onetap/tap/tap_net.h"

namespace onetap {

// Weights and biases times their scales; values are not rounded. To compare with: what it gives is close to what the
// int8 network gives, and to what the network was that it was made from. kData where plan_int8() refuses the network,
// or where floats cannot hold a weight or a bias.
TapNet float_net(const TapNet& int8);

}  // namespace onetap
