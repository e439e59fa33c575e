// Nodes of a frozen network as the kernels want them.
#pragma once

#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/kernel_set.h"
#include "onetap/plan/execution_plan.h"
#include "onetap/tap/tap_net.h"

namespace onetap {

ConvShape conv_shape(const Graph& graph, const Node& node);
ConvWeights conv_weights(const TapNet& net, const Node& node);
PoolShape pool_shape(const Graph& graph, const Node& node);

// Values as the kernels want them: floats, planes on cache lines and spread over the cache.
PlanOptions plan_options();

}  // namespace onetap
