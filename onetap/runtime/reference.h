// The reference executor: plain loops over a TapNet, one image at a time. Slow, and the truth for everything faster.
#pragma once

#include "onetap/tap/tap_net.h"

#include <functional>
#include <vector>

namespace onetap {

// kFailure if an op has no function here; kUsage if the values of an image would take more than `memory_limit` bytes
// (0: those of ONETAP_MEMORY, or 1 GiB).
void check_reference(const TapNet& net, int64_t memory_limit = 0);

// `image` holds planes of floats as the graph's input node has them; returns the values of the output node.
// Calls check_reference() before anything is computed. Several threads may call it at once.
std::vector<float> run_reference(const TapNet& net, const float* image, int64_t memory_limit = 0);

// And calls visit(node, values) for every node in its order, the input included.
using VisitNode = std::function<void(const Node& node, const std::vector<float>& values)>;
std::vector<float> run_reference(const TapNet& net, const float* image, const VisitNode& visit,
                                 int64_t memory_limit = 0);

// Whether there is a function for the op.
bool is_in_reference(Op op);

}  // namespace onetap
