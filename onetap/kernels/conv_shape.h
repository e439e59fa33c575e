// What a convolution computes, whoever computes it.
#pragma once

#include "onetap/base/tap_layout.h"

#include <cstdint>

namespace onetap {

// What slides over a plane.
struct Window {
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t padding_h = 0, padding_w = 0;
};

struct ConvShape : Window {
  int64_t in = 1, in_h = 1, in_w = 1;
  int64_t out = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  int64_t taps = 0;  // weights per kernel slice, each with a position; 0: all positions, in order
  // Of a convolution with taps: what its layout() adds to these sizes.
  int64_t share_outputs = 1, share_inputs = 1;
  bool may_be_empty = false;

  int64_t out_h() const { return extent(in_h, kernel_h, stride_h, padding_h, dilation_h); }
  int64_t out_w() const { return extent(in_w, kernel_w, stride_w, padding_w, dilation_w); }
  int64_t area() const { return kernel_h * kernel_w; }
  int64_t in_per_group() const { return in / groups; }
  int64_t out_per_group() const { return out / groups; }
  int64_t taps_per_slice() const { return taps > 0 ? taps : area(); }
  // Which slices have which positions, where there are taps.
  TapLayout layout() const { return {out, in_per_group(), area(), taps, share_outputs, share_inputs, may_be_empty}; }

 private:
  static int64_t extent(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
};

// As LayerTensors has them: weight [out, in / groups, taps], positions: codes of ConvShape::layout() (null for a dense
// convolution), bias [out] (null for none).
struct ConvWeights {
  const float* weight = nullptr;
  const uint16_t* positions = nullptr;
  const float* bias = nullptr;
};

// One image's planes. A plane's floats lie together; planes may lie further apart.
struct ConvIo {
  const float* x = nullptr;
  int64_t x_plane = 0;  // floats from one plane to the next
  float* y = nullptr;
  int64_t y_plane = 0;
  const float* residual = nullptr;  // added before ReLU; laid out as y; null for none
  int64_t residual_plane = 0;
  bool relu = false;
};

}  // namespace onetap
