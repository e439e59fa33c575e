// A frozen network with every weight of its kernels: what it is compared with.
#pragma once

#include "onetap/tap/tap_net.h"

namespace onetap {

// Tap convolutions as convolutions, with zeros where weights were pruned; floats or int8, everything else as it is.
TapNet dense_form(const TapNet& net);

}  // namespace onetap
