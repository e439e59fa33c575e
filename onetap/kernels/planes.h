// Runs a PlanePlan.
#pragma once

#include "onetap/kernels/kernel_set.h"
#include "onetap/kernels/plane_plan.h"

namespace onetap {

// Part `part` of `parts` of one image: some of the groups. `scratch`: plan.scratch_floats() floats on a cache line, of
// this thread alone. Parts may run at the same time, and results are the same for any number of them, bit for bit. y
// may hold up to one cache line more than the plane's pixels, which is overwritten with anything.
void run_planes(const KernelSet& kernels, const PlanePlan& plan, const ConvIo& io, float* scratch, int64_t part = 0,
                int64_t parts = 1);

}  // namespace onetap
