// The steps of int8 networks in plain loops, one image at a time: slow, and the bytes that everything faster gives.
// Planes lie without gaps.
#pragma once

#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/int8_io.h"
#include "onetap/kernels/kernel_set.h"

#include <vector>

namespace onetap::reference {

// q = x / scale, rounded to the nearest, halves to even, clamped to the range of q's type; 0 for a NaN.
void quantize(int64_t count, float scale, const float* x, const ByteOutput& q);
// x = float(q) * scale
void dequantize(int64_t count, float scale, const ByteInput& q, float* x);

void int8_conv(const ConvShape& shape, const Int8ConvWeights& weights, const Int8Epilogue& epilogue,
               const Int8ConvIo& io);
void int8_linear(int64_t in, int64_t out, const int8_t* weight, const Int8Epilogue& epilogue, const Int8ConvIo& io);
void int8_affine(int64_t channels, int64_t pixels, const int8_t* weight, const Int8Epilogue& epilogue,
                 const Int8ConvIo& io);

// The mean over the whole kernel, padding counted as zeros: the sum of the window, requantized by requantize[0] or as
// floats by dequantize[0].
void int8_avg_pool(const PoolShape& shape, const Int8Epilogue& epilogue, const ByteInput& x, const ByteOutput& y);
void int8_global_mean(int64_t channels, int64_t pixels, const Int8Epilogue& epilogue, const ByteInput& x,
                      const ByteOutput& y);
// Of the pixels that are there: padding is no pixel. y has the type of x.
void int8_max_pool(const PoolShape& shape, const ByteInput& x, const ByteOutput& y);

// y = clamp((sum of inputs[i] * factors[i] + 2^15) >> 16)
void int8_add(int64_t count, const std::vector<ByteInput>& inputs, const int32_t* factors, const ByteOutput& y);

// y = x, clamped to the range of y's type: parts of a concatenation, flattened planes, a ReLU.
void int8_copy(int64_t count, const ByteInput& x, const ByteOutput& y);

// Subsampling and shifts move bytes as they are: subsample() and shift() of reference.h, of uint8_t.

}  // namespace onetap::reference
