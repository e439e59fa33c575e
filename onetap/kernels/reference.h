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
template <typename T>  // float, or uint8_t for bytes of any meaning
void subsample(const SubsampleShape& shape, const T* x, T* y);
// y[c][h][w] = x[c] at (h, w) moved to position codes[c] of a kernel around it; zeros come in.
struct ShiftShape {
  int64_t channels = 1, height = 1, width = 1;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
};
template <typename T>  // as above
void shift(const ShiftShape& shape, const uint16_t* codes, const T* x, T* y);
// y[c][h][w] = x[c] at (h * stride + shifts[c][0], w * stride + shifts[c][1]), bilinear between the four pixels around
// it, zeros outside. A pixel of weight 0 is not read.
struct ActiveShiftShape {
  int64_t channels = 1, in_h = 1, in_w = 1;
  int64_t stride_h = 1, stride_w = 1;
};
void active_shift(const ActiveShiftShape& shape, const float* shifts, const float* x, float* y);
// The image of in_h x in_w pixels with its first pixel at (top, left) of one of out_h x out_w, `fill` around it.
struct PadShape {
  int64_t channels = 1, in_h = 1, in_w = 1;
  int64_t top = 0, left = 0;
  int64_t out_h = 1, out_w = 1;
};
void pad(const PadShape& shape, float fill, const float* x, float* y);
void global_mean(int64_t channels, int64_t pixels, const float* x, float* y);

}  // namespace onetap::reference
