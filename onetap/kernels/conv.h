// Runs a planned convolution.
#pragma once

#include "onetap/kernels/conv_plan.h"
#include "onetap/kernels/kernel_set.h"

namespace onetap {

// What of one image a thread does: some of the pixels, of the groups or of the outputs.
struct ConvCut {
  enum class By { kPixels, kGroups, kOutputs };
  By by = By::kPixels;
  int64_t parts = 1;
};

// The cut that suits so many threads best. Results are the same for every cut, bit for bit.
ConvCut cut_conv(const ConvPlan& plan, int64_t threads);

// One part of one image. `scratch`: plan.scratch_floats() floats on a cache line, of this thread alone. Parts may run
// at the same time; y may hold up to one cache line more than the plane's pixels, which is overwritten with anything.
void run_conv(const KernelSet& kernels, const ConvPlan& plan, const ConvIo& io, float* scratch, const ConvCut& cut = {},
              int64_t part = 0);

}  // namespace onetap
