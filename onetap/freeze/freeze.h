// A trained module to a TapNet: the one place that sees both halves.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/tap/tap_net.h"

namespace onetap {

// Hard max, batch norms folded in double precision, pruned weights gone; weights rounded to `type`.
// The module itself stays as it is.
TapNet freeze(const nn::GraphModule& module, WeightType type = WeightType::kF32);

}  // namespace onetap
