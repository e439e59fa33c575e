// Which fused steps a network is made of: a convolution alone, a batch norm with the sum and the ReLU that follow it,
// pools, and the linear layer at the end. Every value but the result has a reader: a step's gradient is the sum of
// what its readers give.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <vector>

namespace onetap::fused {

struct Step {
  enum class Kind { kConv, kNorm, kMaxPool, kGlobalPool, kLinear };

  Kind kind = Kind::kConv;
  const Node* node = nullptr;  // of the plan's graph
  int input = 0;               // values; 0 is the image
  int residual = -1;           // of a norm: what is added before the ReLU
  bool relu = false;           // of a norm
  bool last_reader = false;    // of a norm: no later step reads its input
  int output = 0;
};

struct Plan {
  std::vector<Step> steps;
  int values = 1;
  int result = 0;
  std::string obstacle;  // why this network cannot run so; empty: it can
};

// `graph` must outlive the plan.
Plan make_plan(const Graph& graph);

}  // namespace onetap::fused
