// How much memory the values of a network need while it runs.
#pragma once

#include "onetap/graph/graph.h"

#include <cstdint>

namespace onetap {

// Most floats alive at once for one image, node after node in the graph's order: a value lives until its last
// reader has run; activation functions, add, mul, affine and flatten work in the place of an
// input of their size that ends with them.
int64_t peak_activations(const Graph& graph);

}  // namespace onetap
