// What a network does, step by step, and where every value lies: decided once, before the first image.
#pragma once

#include "onetap/graph/graph.h"

#include <cstdint>
#include <vector>

namespace onetap {

// A tensor between two steps: planes that begin on a cache line, or a plain vector.
struct PlannedValue {
  int64_t channels = 1;
  int64_t pixels = 1;  // of a plane
  int64_t plane = 1;   // floats from one plane to the next
  int64_t offset =
      0;  // floats into the arena; of no meaning for the network's input, which stays where the caller has it

  int64_t floats() const { return channels * plane; }
};

// A node, and what of its successors was fused into it: a sum that joins a convolution, a ReLU.
struct PlannedStep {
  const Node* node = nullptr;    // of the planned graph
  const Node* source = nullptr;  // its first input
  std::vector<int> inputs;       // values
  int residual = -1;             // value added to a convolution's result, or -1
  bool relu = false;
  int output = 0;
};

struct ExecutionPlan {
  std::vector<PlannedValue> values;
  std::vector<PlannedStep> steps;
  int input = 0;
  int output = 0;
  int64_t arena_floats = 0;
};

// The graph must outlive the plan. kUsage if the arena would exceed 2^32 floats.
ExecutionPlan plan_execution(const Graph& graph);

}  // namespace onetap
