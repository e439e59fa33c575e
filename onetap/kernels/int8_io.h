// What the steps of an int8 network compute, whoever computes them. docs/quantization.md has the definition.
#pragma once

#include "onetap/base/requantize.h"
#include "onetap/base/tensor.h"

#include <cstddef>
#include <cstdint>

namespace onetap {

// Values of bytes: kU8 (0 to 255) or kI8 (-127 to 127). 0 stands for 0 in both.
struct ByteInput {
  const std::byte* data = nullptr;
  DType dtype = DType::kU8;
};

// kU8, kI8, or kF32 where the network's outputs leave as floats.
struct ByteOutput {
  std::byte* data = nullptr;
  DType dtype = DType::kU8;
};

// [least, most] of a type of bytes: what results are clamped to, which is all that a ReLU does.
constexpr int32_t least_byte(DType dtype) {
  return dtype == DType::kU8 ? 0 : -127;
}
constexpr int32_t most_byte(DType dtype) {
  return dtype == DType::kU8 ? 255 : 127;
}

// What becomes of the sums of a layer, output by output:
//   sum   = bias[d] + sum of weights * inputs
//   total = (sum << left_shift) + residual * residual_factor[d]
//   y     = clamp(requantized(total, requantize[d])), or float(sum) * dequantize[d] where floats leave
// Whoever made the numbers has checked that no sum and no total passes 32 bits, in whatever order it is added up.
struct Int8Epilogue {
  const int32_t* bias = nullptr;
  int left_shift = 0;
  const int32_t* residual_factor = nullptr;
  const Requantize* requantize = nullptr;
  const float* dequantize = nullptr;  // null unless the output is kF32; then there is no residual
};

// As ConvWeights, in bytes of -127 to 127.
struct Int8ConvWeights {
  const int8_t* weight = nullptr;
  const uint16_t* positions = nullptr;  // null for a dense convolution
};

struct Int8ConvIo {
  ByteInput x;
  ByteInput residual;  // laid out as y; without data: none
  ByteOutput y;
};

}  // namespace onetap
