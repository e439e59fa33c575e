#include "onetap/kernels/int8_reference.h"

#include "onetap/base/quantized.h"
#include "onetap/kernels/reference-inl.h"

#include <algorithm>

namespace onetap::reference {
namespace {

// Calls use(values) with the bytes as numbers of their type.
template <typename Use>
void with_type(const ByteInput& bytes, Use use) {
  if (bytes.dtype == DType::kU8) {
    use(reinterpret_cast<const uint8_t*>(bytes.data));
  } else {
    use(reinterpret_cast<const int8_t*>(bytes.data));
  }
}

int32_t value_at(const ByteInput& bytes, int64_t i) {
  const std::byte byte = bytes.data[i];
  return bytes.dtype == DType::kU8 ? static_cast<int32_t>(byte) : static_cast<int8_t>(byte);
}

void store(const ByteOutput& y, int64_t i, int32_t value) {
  y.data[i] = static_cast<std::byte>(std::clamp(value, least_byte(y.dtype), most_byte(y.dtype)));
}

// What becomes of the sum, bias included, of output d at place i.
void finish(const Int8Epilogue& epilogue, int64_t d, int32_t sum, const ByteInput& residual, const ByteOutput& y,
            int64_t i) {
  if (y.dtype == DType::kF32) {
    reinterpret_cast<float*>(y.data)[i] = static_cast<float>(sum) * epilogue.dequantize[d];
    return;
  }
  int32_t total = sum * (int32_t{1} << epilogue.left_shift);
  if (residual.data != nullptr) total += value_at(residual, i) * epilogue.residual_factor[d];
  store(y, i, requantized(total, epilogue.requantize[d]));
}

}  // namespace

void quantize(int64_t count, float scale, const float* x, const ByteOutput& q) {
  const int32_t least = least_byte(q.dtype), most = most_byte(q.dtype);
  for (int64_t i = 0; i < count; ++i) q.data[i] = static_cast<std::byte>(quantized(x[i], scale, least, most));
}

void dequantize(int64_t count, float scale, const ByteInput& q, float* x) {
  for (int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(value_at(q, i)) * scale;
}

void int8_conv(const ConvShape& shape, const Int8ConvWeights& weights, const Int8Epilogue& epilogue,
               const Int8ConvIo& io) {
  const int64_t pixels = shape.out_h() * shape.out_w();
  std::vector<int32_t> sums(static_cast<size_t>(pixels));
  for (int64_t d = 0; d < shape.out; ++d) {
    std::fill(sums.begin(), sums.end(), epilogue.bias[d]);
    with_type(io.x, [&](const auto* x) { add_taps(shape, weights.weight, weights.positions, d, x, sums.data()); });
    for (int64_t i = 0; i < pixels; ++i) {
      finish(epilogue, d, sums[static_cast<size_t>(i)], io.residual, io.y, d * pixels + i);
    }
  }
}

void int8_linear(int64_t in, int64_t out, const int8_t* weight, const Int8Epilogue& epilogue, const Int8ConvIo& io) {
  for (int64_t d = 0; d < out; ++d) {
    int32_t sum = epilogue.bias[d];
    for (int64_t c = 0; c < in; ++c) sum += weight[d * in + c] * value_at(io.x, c);
    finish(epilogue, d, sum, io.residual, io.y, d);
  }
}

void int8_affine(int64_t channels, int64_t pixels, const int8_t* weight, const Int8Epilogue& epilogue,
                 const Int8ConvIo& io) {
  for (int64_t i = 0; i < channels * pixels; ++i) {
    const int64_t d = i / pixels;
    finish(epilogue, d, epilogue.bias[d] + weight[d] * value_at(io.x, i), io.residual, io.y, i);
  }
}

void int8_avg_pool(const PoolShape& shape, const Int8Epilogue& epilogue, const ByteInput& x, const ByteOutput& y) {
  int64_t to = 0;
  with_type(x, [&](const auto* plane) {
    for (int64_t c = 0; c < shape.channels; ++c, plane += shape.in_h * shape.in_w) {
      for (int64_t row = 0; row < shape.out_h; ++row) {
        for (int64_t column = 0; column < shape.out_w; ++column) {
          int32_t sum = 0;
          visit_window(shape, row, column, plane, [&](int32_t pixel) { sum += pixel; });
          finish(epilogue, 0, sum, {}, y, to++);
        }
      }
    }
  });
}

void int8_global_mean(int64_t channels, int64_t pixels, const Int8Epilogue& epilogue, const ByteInput& x,
                      const ByteOutput& y) {
  for (int64_t c = 0; c < channels; ++c) {
    int32_t sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += value_at(x, c * pixels + i);
    finish(epilogue, 0, sum, {}, y, c);
  }
}

void int8_max_pool(const PoolShape& shape, const ByteInput& x, const ByteOutput& y) {
  int64_t to = 0;
  with_type(x, [&](const auto* plane) {
    for (int64_t c = 0; c < shape.channels; ++c, plane += shape.in_h * shape.in_w) {
      for (int64_t row = 0; row < shape.out_h; ++row) {
        for (int64_t column = 0; column < shape.out_w; ++column) {
          int32_t most = least_byte(x.dtype);
          visit_window(shape, row, column, plane, [&](int32_t pixel) { most = std::max(most, pixel); });
          store(y, to++, most);
        }
      }
    }
  });
}

void int8_add(int64_t count, const std::vector<ByteInput>& inputs, const int32_t* factors, const ByteOutput& y) {
  for (int64_t i = 0; i < count; ++i) {
    int32_t sum = 1 << 15;
    for (size_t k = 0; k < inputs.size(); ++k) sum += value_at(inputs[k], i) * factors[k];
    store(y, i, sum >> 16);
  }
}

void int8_copy(int64_t count, const ByteInput& x, const ByteOutput& y) {
  for (int64_t i = 0; i < count; ++i) store(y, i, value_at(x, i));
}

}  // namespace onetap::reference
