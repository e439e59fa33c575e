// Runs a planned convolution.
#pragma once

#include "onetap/kernels/conv_plan.h"
#include "onetap/kernels/kernel_set.h"

namespace onetap {

// Parts into which `threads` threads best cut the work of one image: one per tile, or some of the outputs each.
int64_t conv_parts(const ConvPlan& plan, int64_t threads);

// One part of one image. `scratch`: plan.scratch_floats() floats on a cache line, of this thread alone. Parts may run
// at the same time; y may hold up to one cache line more than the plane's pixels, which is overwritten with anything.
void run_conv(const KernelSet& kernels, const ConvPlan& plan, const ConvIo& io, float* scratch, int64_t part = 0,
              int64_t parts = 1);

}  // namespace onetap
