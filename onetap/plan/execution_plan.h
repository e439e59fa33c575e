// What a network does, step by step, and where every value lies: decided once, before the first image. The runtime
// follows it; a generator of code would write it down.
#pragma once

#include "onetap/base/tensor.h"
#include "onetap/graph/graph.h"

#include <cstdint>
#include <vector>

namespace onetap {

struct PlanOptions {
  DType dtype = DType::kF32;  // of all values
  int64_t alignment = 4;      // bytes: values, and the planes of those that have planes, begin at multiples of it
  // Planes lie an odd number of alignments apart. With cache lines as the alignment: at 4 KiB (32x32 floats) the same
  // pixel of every channel would fall into the same set of the cache, which then holds a dozen channels and no more.
  bool odd_plane_stride = false;
};

// Elements from one plane of so many pixels to the next.
int64_t plane_stride(int64_t pixels, const PlanOptions& options);

// A tensor between two steps: aligned planes, or a plain vector.
struct PlannedValue {
  const Node* node = nullptr;  // whose result it is: the last of those fused into a step
  DType dtype = DType::kF32;
  int64_t channels = 1;
  int64_t pixels = 1;        // of a plane
  int64_t plane_stride = 1;  // elements from one plane to the next
  // Bytes into the arena; of no meaning for the network's input, which stays where the caller has it, without gaps.
  int64_t offset = 0;

  int64_t elements() const { return channels * plane_stride; }  // with the gaps between planes
  int64_t bytes() const { return elements() * static_cast<int64_t>(dtype_bytes(dtype)); }
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
  int64_t arena_bytes = 0;
  const Node* peak = nullptr;  // the node at whose step most bytes of the arena are in use

  const PlannedValue& value(int index) const { return values[static_cast<size_t>(index)]; }
};

// Places the values of a plan anew, in so many bytes each (0: nowhere). The network's input is there from before the
// first step on.
void place_in_arena(ExecutionPlan& plan, const std::vector<int64_t>& bytes, int64_t alignment);

// Of a frozen network's graph, which must outlive the plan. kUsage if the alignment is no multiple of the type's size.
ExecutionPlan plan_execution(const Graph& graph, const PlanOptions& options = {});

}  // namespace onetap
