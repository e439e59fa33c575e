// The reference executor: plain loops over a TapNet, one image at a time. Slow, and the truth for everything faster.
#pragma once

#include "onetap/tap/tap_net.h"

#include <vector>

namespace onetap {

// `image` holds planes of floats as the graph's input node has them; returns the values of the output node.
// kUsage if the network's values would need more than 2^32 floats. Several threads may call it at once.
std::vector<float> run_reference(const TapNet& net, const float* image);

}  // namespace onetap
