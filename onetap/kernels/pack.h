// Copies inputs into the layout that ConvPlan describes.
#pragma once

#include "onetap/kernels/kernel_set.h"

namespace onetap {

// Packs a block of the channels of x for the tile that begins at output pixel `first` and has `vectors` vectors. The
// pack lies parts_floats() into `scratch`.
void pack_tile(const KernelSet& kernels, const ConvPlan& plan, const float* x, int64_t x_plane,
               const ConvPlan::Block& block, int64_t first, int64_t vectors, float* scratch);

}  // namespace onetap
