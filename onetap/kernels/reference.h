// Every op in plain loops, one image at a time: slow, and the truth for everything faster. Planes lie without gaps.
#pragma once

#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/kernel_set.h"

namespace onetap::reference {

void conv(const ConvShape& shape, const ConvWeights& weights, const float* x, float* y);
void linear(int64_t in, int64_t out, const float* weight, const float* bias, const float* x, float* y);
void affine(int64_t channels, int64_t pixels, const float* scale, const float* shift, const float* x, float* y);
void pool(const PoolShape& shape, const float* x, float* y);
void global_mean(int64_t channels, int64_t pixels, const float* x, float* y);

}  // namespace onetap::reference
