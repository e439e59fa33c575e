// Every op in plain loops, one image at a time: slow, and the truth for everything faster. Planes lie without gaps.
#pragma once

#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/kernel_set.h"

namespace onetap::reference {

void conv(const ConvShape& shape, const ConvWeights& weights, const float* x, float* y);
void linear(int64_t in, int64_t out, const float* weight, const float* bias, const float* x, float* y);
void affine(int64_t channels, int64_t pixels, const float* scale, const float* shift, const float* x, float* y);
void pool(const PoolShape& shape, const float* x, float* y);
// Channels 0 to out - 1 of y: (out - in) / 2 of zeros, those of x, zeros again; of each, every stride-th pixel.
struct SubsampleShape {
  int64_t in = 1, in_h = 1, in_w = 1;
  int64_t out = 1;
  int64_t stride_h = 1, stride_w = 1;
};
void subsample(const SubsampleShape& shape, const float* x, float* y);
void global_mean(int64_t channels, int64_t pixels, const float* x, float* y);

}  // namespace onetap::reference
