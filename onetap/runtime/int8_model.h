// What a Model of an int8 network knows beside its plan: the integers of every step, and how values lie.
#pragma once

#include "onetap/kernels/int8_conv.h"
#include "onetap/kernels/int8_layout.h"
#include "onetap/quant/int8_plan.h"
#include "onetap/quant/pixel_bytes.h"

#include <memory>
#include <vector>

namespace onetap {

struct Int8Model {
  std::vector<Int8Value> values;        // as the plan's values
  std::vector<Int8Step> steps;          // as the plan's steps
  std::vector<QuadLayout> layouts;      // of values; those of F32 have no place in the arena
  std::vector<PixelBytes> pixel_bytes;  // by pixel_channel(); more by zero(), as bytes in quads are

  const Int8Value& value(int index) const { return values[static_cast<size_t>(index)]; }
  const QuadLayout& layout(int index) const { return layouts[static_cast<size_t>(index)]; }
  uint8_t zero(int index) const { return zero_byte(value(index).dtype); }
};

// One step's, made when the model is.
struct Int8Layer {
  std::unique_ptr<Int8ConvPlan> conv;  // affine layers are convolutions of one tap, channel by channel
  std::vector<int8_t> linear;          // rows of whole vectors
  std::vector<int32_t> linear_start;
  int64_t row_bytes = 0;
  std::vector<uint16_t> shift_codes;
  int64_t scratch_bytes = 0;
};

// The integers of an int8 network, and the plan with its values as quads: `graph` is a copy of the network's, to which
// the plan's pointers then point.
struct PlannedInt8 {
  std::unique_ptr<Int8Model> model;
  ExecutionPlan plan;
};
PlannedInt8 plan_int8_quads(const TapNet& net, const Graph& graph);

}  // namespace onetap
