// A frozen network as generated C runs it: values of rows of pixels in one arena, and steps that make a row at a time.
#pragma once

#include "onetap/emit/c_input.h"
#include "onetap/plan/execution_plan.h"
#include "onetap/plan/row_plan.h"
#include "onetap/quant/int8_plan.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

// The channels of a pixel lie together; in int8, a pixel begins at a multiple of 4 bytes.
struct CValue {
  std::string name;
  int64_t height = 1, width = 1;  // a vector is one pixel
  int64_t channels = 1;
  int64_t stride = 1;  // elements from a pixel to the next
};

struct CStep {
  const PlannedStep* planned = nullptr;  // null: reads the caller's input, or writes the caller's output
  int planned_index = -1;
  std::vector<int> inputs;  // values; what is added to a convolution's result comes last
  int output = 0;
  std::string name;
};

struct CProgram {
  // Of a network that outlives it.
  CProgram(const TapNet& net, RowMode mode, CInput given = CInput::kFloats);
  CProgram(const CProgram&) = delete;  // steps point into the plan
  CProgram& operator=(const CProgram&) = delete;

  const ExecutionPlan& plan() const { return int8 ? int8->plan : *floats; }
  bool takes_pixels() const { return takes == CInput::kPixels; }
  bool is_int8() const { return int8.has_value(); }
  int64_t element_bytes() const { return is_int8() ? 1 : 4; }
  const CValue& value(int index) const { return values[static_cast<size_t>(index)]; }
  const CStep& step(int index) const { return steps[static_cast<size_t>(index)]; }
  int64_t rows_of(const CStep& step) const { return value(step.output).height; }
  // Whether the step gives the caller's floats by itself.
  bool gives_floats(const CStep& step) const;
  // kUsage if the arena of this schedule is larger than offsets are.
  void check_arena() const;

  const CInput takes;
  std::optional<ExecutionPlan> floats;  // of a float network,
  std::optional<Int8Plan> int8;         // or of an int8 one
  std::vector<CValue> values;           // as those of the plan; the last is the caller's output
  std::vector<CStep> steps;
  RowPlan rows;
  int64_t zeros = 0;  // elements at the arena's begin that convolutions read outside of the image
  int64_t arena_bytes = 0;

 private:
  void add_values();
  void add_steps();
  RowProgram row_program(const Graph& graph) const;
  void check_sizes() const;  // before rows are planned
};

// Convolutions, and what is computed as one: linear and affine layers.
bool is_conv_step(Op op);

}  // namespace onetap
