// The weights and the bias of one layer, as bytes on a grid of scales.
#pragma once

#include "onetap/tap/tap_net.h"

#include <cstdint>

namespace onetap {

// A value that a layer reads: its scale, and the largest byte of its type.
struct ValueScale {
  float scale = 0;
  int32_t most = 255;

  double largest() const { return static_cast<double>(scale) * most; }
};

struct LayerSurroundings {
  ValueScale input;
  ValueScale residual{0, 0};  // scale 0: none
};

// Per output the finest scale on the grid at which no weight passes 127 steps, the bias fits its 16 bits and sums keep
// away from 32 bits. `weight` [outputs, ...] and `bias` (may be empty) are floats.
WeightScale choose_weight_scale(const Tensor& weight, const Tensor& bias, const LayerSurroundings& around);

// The layer in bytes: weights rounded to the nearest (halves to even), positions as they were.
LayerTensors quantize_layer(const LayerTensors& layer, const LayerSurroundings& around);

}  // namespace onetap
