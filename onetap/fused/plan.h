// Which fused steps a network is made of: a convolution alone (dense or depthwise), a batch norm with the sum and the
// ReLU that follow it, sums and ReLUs that no batch norm takes in, shifts, pools, and the linear layer at the end.
// Every value but the result has a reader: a step's gradient is the sum of what its readers give.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <vector>

namespace onetap::fused {

struct Step {
  enum class Kind {
    kConv,
    kDepthwise,
    kNorm,
    kAdd,
    kRelu,
    kShift,
    kActiveShift,
    kSubsample,
    kMaxPool,
    kGlobalPool,
    kLinear,
  };

  Kind kind = Kind::kConv;
  const Node* node = nullptr;  // of the plan's graph
  int input = 0;               // values; 0 is the image
  int residual = -1;           // of a norm: what is added before the ReLU; of a sum: the second value
  bool relu = false;           // of a norm
  int output = 0;
  std::vector<int> last_uses;  // values that no later step reads
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
