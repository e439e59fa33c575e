// How a convolution is best walked: by rule, or by trying.
#pragma once

#include "onetap/kernels/conv_plan.h"
#include "onetap/kernels/kernel_set.h"

namespace onetap {

// Whether single planes are better than blocks of channels: where few inputs make few outputs there is next to nothing
// that they could share.
bool runs_by_planes(const ConvShape& shape);

// By rule, from what was measured on one machine (docs/cpu-speed.md).
ConvBlocking choose_blocking(const ConvShape& shape, const KernelSet& kernels);

// The fastest of several, each timed on random data on one thread: a few tenths of a second a layer.
ConvBlocking tune_blocking(const ConvShape& shape, const ConvWeights& weights, const KernelSet& kernels);

}  // namespace onetap
