// Layers of an int8 network that are kept in floats: in from bytes, computed by the kernels of floats, out to bytes.
#pragma once

#include "onetap/runtime/steps.h"

namespace onetap {

int64_t kept_bytes(const LayerSource& source);
void prepare_kept(const LayerSource& source, Model::Layer& layer);
void run_kept(const StepContext& context);

// A value of the arena to and from planes of floats, `plane` of them apart.
void quantize_planes(const StepContext& context, int value, const float* from, int64_t plane);
void dequantize_planes(const StepContext& context, int value, float* to, int64_t plane);

}  // namespace onetap
