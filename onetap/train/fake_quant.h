// Rounding to what bytes can say, with gradients as if nothing had been rounded: the arithmetic of training for int8.
#pragma once

#include "onetap/nn/torch.h"

namespace onetap {

// Integers that a value may have.
struct ByteRange {
  int64_t least = -127, most = 127;
};

// round(x / scale), halves up, within the range, times scale. The gradient of x is that of the result where x / scale
// lies within the range, ends included, and 0 outside; scale, positive and of a shape that fits x, has none.
torch::Tensor fake_quantize(const torch::Tensor& x, const torch::Tensor& scale, const ByteRange& range);

// The scales of weights [out, ...], one per output, on the grid that int8 networks have (tap/weight_scale.h): the
// largest weight of an output has 121 to 127 steps. [out], in 64 bits; nothing waits for the device.
torch::Tensor weight_scales(const torch::Tensor& weight);

// Weights rounded to those scales.
torch::Tensor fake_quantize_weight(const torch::Tensor& weight);

}  // namespace onetap
