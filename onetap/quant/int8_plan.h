// An int8 network, step by step, in the integers that every executor uses: the reference, the fast kernels and
// generated code take them from here, and so give the same bytes. docs/quantization.md has the definition.
#pragma once

#include "onetap/base/requantize.h"
#include "onetap/plan/execution_plan.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace onetap {

// Of a positive factor; kData with `what` where it is one half or more. A factor below 2^-32 gives 0.
Requantize requantize_by(double factor, const char* what);

// A value between two steps. Its zero is 0, so that zeros around a plane are zeros.
struct Int8Value {
  // kU8 (0 to 255) where nothing is negative (behind a ReLU), else kI8 (-127 to 127). kF32: the network's output where
  // a step gives it in floats, and its input where kept layers alone read it. Floats are the caller's: they have no
  // place in the plan's arena.
  DType dtype = DType::kU8;
  float scale = 1;

  int32_t least() const { return dtype == DType::kU8 ? 0 : -127; }
  int32_t most() const { return dtype == DType::kU8 ? 255 : 127; }
};

struct Int8Step {
  // Convolutions, affine and linear layers:
  //   sum = bias[d] + sum of weights * inputs
  //   total = (sum << left_shift) + residual * residual_factor[d]
  //   y = clamp(requantized(total, requantize[d])), to the range of y's type, which is all that a ReLU does;
  //   float(sum) * dequantize[d] for the network's output in floats, which has no residual
  std::vector<int32_t> bias;             // per output, shifted by the layer's bias_shift; 0 where there is none
  int left_shift = 0;                    // finer units for a residual, or for factors of one half and more. Pools too
  std::vector<int32_t> residual_factor;  // per output; empty without a residual
  std::vector<Requantize> requantize;    // per output. Pools that add up: one, of the sum of a window
  std::vector<float> dequantize;         // likewise, where the step gives floats; else empty
  // Sums of values, without a convolution: y = clamp((sum of inputs * factors + 2^15) >> 16).
  std::vector<int32_t> factors;
  // A layer whose weights are floats: its inputs and its residual are dequantized, everything is computed as in a
  // network of floats, and the result is quantized, or leaves as it is for the network's output.
  bool is_kept = false;
};

struct Int8Plan {
  ExecutionPlan plan;             // of bytes, planes without gaps
  std::vector<Int8Value> values;  // as plan.values
  std::vector<Int8Step> steps;    // as plan.steps

  const Int8Value& value(int index) const { return values[static_cast<size_t>(index)]; }
};

// Of an int8 network that must outlive it. kData where scales are missing or do not fit the steps, where an op has no
// int8 form, or where a sum might pass 32 bits.
Int8Plan plan_int8(const TapNet& net);

// The types of a plan's values, from the ops and the names of the layers that are kept in floats: what a quantizer asks
// before there are scales.
std::vector<DType> int8_types(const ExecutionPlan& plan, const std::set<std::string>& kept = {});

// kData unless nodes of this op have an int8 form.
void check_int8_op(const Node& node);

// Layers with weights: convolutions, linear and affine layers.
bool has_int8_weights(Op op);

// Steps whose result has the scale of what they read: copies, maxima, ReLUs.
bool keeps_scale(Op op);

// Whether the step of a plan gives the network's output in floats: a convolution, a linear layer or a mean.
bool gives_floats(const ExecutionPlan& plan, const PlannedStep& step);

}  // namespace onetap
