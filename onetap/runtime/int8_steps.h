// What the steps of an int8 network do on the fast kernels, and how images get in and results out.
#pragma once

#include "onetap/runtime/steps.h"

namespace onetap {

// Rows of the table of steps, of type I8.
const std::vector<StepKind>& int8_step_table();

// An image into the network's input: planes of floats, or of pixels as they are.
void quantize_image(const StepContext& context, const float* image);
void quantize_image(const StepContext& context, const uint8_t* pixels);

// The network's output as floats, where no step has given them.
void dequantize_output(const StepContext& context, float* to);

}  // namespace onetap
