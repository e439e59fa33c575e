// Nodes of a frozen network as the kernels want them.
#pragma once

#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/kernel_set.h"
#include "onetap/tap/tap_net.h"

namespace onetap {

ConvShape conv_shape(const Graph& graph, const Node& node);
ConvWeights conv_weights(const TapNet& net, const Node& node);
PoolShape pool_shape(const Graph& graph, const Node& node);

// Every stride-th pixel of x, its channels behind `front` channels of zeros; planes lie x_plane and y_plane apart.
void subsample(const Node& node, const Shape& in_shape, const float* x, int64_t x_plane, float* y, int64_t y_plane);

}  // namespace onetap
