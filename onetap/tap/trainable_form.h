// The network that a frozen one is, in ops that LibTorch runs.
#pragma once

#include "onetap/graph/graph.h"

namespace onetap {

// Tap convolutions as convolutions with every weight, scale and shift as batch norms; names stay.
Graph trainable_form(const Graph& frozen);

}  // namespace onetap
