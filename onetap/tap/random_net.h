// Frozen networks with random tensors: to try a network's speed and size before it is trained, and for tests.
#pragma once

#include "onetap/tap/tap_net.h"

#include <cstdint>

namespace onetap {

// Weights scaled to their number of inputs, so that values stay of the same size through any depth; positions uniform.
// A layer that has dropped weights gets about a quarter of its sets empty, whatever their number was.
TapNet random_tap_net(const Graph& frozen, uint64_t seed);

}  // namespace onetap
