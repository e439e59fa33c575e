#include "onetap/kernels/reference.h"

#include "onetap/kernels/reference-inl.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap::reference {

void conv(const ConvShape& shape, const ConvWeights& weights, const float* x, float* y) {
  const int64_t pixels = shape.out_h() * shape.out_w();
  for (int64_t d = 0; d < shape.out; ++d, y += pixels) {
    std::fill_n(y, pixels, weights.bias != nullptr ? weights.bias[d] : 0.0f);
    add_taps(shape, weights.weight, weights.positions, d, x, y);
  }
}

void linear(int64_t in, int64_t out, const float* weight, const float* bias, const float* x, float* y) {
  for (int64_t d = 0; d < out; ++d) {
    float sum = bias != nullptr ? bias[d] : 0.0f;
    for (int64_t c = 0; c < in; ++c) sum += weight[d * in + c] * x[c];
    y[d] = sum;
  }
}

void affine(int64_t channels, int64_t pixels, const float* scale, const float* shift, const float* x, float* y) {
  for (int64_t i = 0; i < channels * pixels; ++i) y[i] = scale[i / pixels] * x[i] + shift[i / pixels];
}

void pool(const PoolShape& shape, const float* x, float* y) {
  for (int64_t c = 0; c < shape.channels; ++c) {
    const float* from = x + c * shape.in_h * shape.in_w;
    for (int64_t row = 0; row < shape.out_h; ++row) {
      for (int64_t column = 0; column < shape.out_w; ++column) {
        float value = shape.is_max ? -std::numeric_limits<float>::infinity() : 0.0f;
        visit_window(shape, row, column, from, [&](float pixel) {
          if (!shape.is_max) {
            value += pixel;
          } else if (pixel > value || std::isnan(pixel)) {  // a NaN comes through, as in LibTorch
            value = pixel;
          }
        });
        *y++ = shape.is_max ? value : value / static_cast<float>(shape.kernel_h * shape.kernel_w);
      }
    }
  }
}

void global_mean(int64_t channels, int64_t pixels, const float* x, float* y) {
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += x[c * pixels + i];
    y[c] = static_cast<float>(sum / static_cast<double>(pixels));
  }
}

template <typename T>
void subsample(const SubsampleShape& shape, const T* x, T* y) {
  const int64_t front = (shape.out - shape.in) / 2;
  for (int64_t d = 0; d < shape.out; ++d) {
    const int64_t c = d - front;
    for (int64_t iy = 0; iy < shape.in_h; iy += shape.stride_h) {
      for (int64_t ix = 0; ix < shape.in_w; ix += shape.stride_w) {
        *y++ = c >= 0 && c < shape.in ? x[(c * shape.in_h + iy) * shape.in_w + ix] : T{0};
      }
    }
  }
}
template void subsample(const SubsampleShape& shape, const float* x, float* y);
template void subsample(const SubsampleShape& shape, const uint8_t* x, uint8_t* y);

void pad(const PadShape& shape, float fill, const float* x, float* y) {
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t row = 0; row < shape.out_h; ++row) {
      for (int64_t column = 0; column < shape.out_w; ++column) {
        const int64_t iy = row - shape.top, ix = column - shape.left;
        const bool inside = iy >= 0 && iy < shape.in_h && ix >= 0 && ix < shape.in_w;
        *y++ = inside ? x[(c * shape.in_h + iy) * shape.in_w + ix] : fill;
      }
    }
  }
}

template <typename T>
void shift(const ShiftShape& shape, const uint16_t* codes, const T* x, T* y) {
  for (int64_t c = 0; c < shape.channels; ++c) {
    const int64_t down = (codes[c] / shape.kernel_w - shape.kernel_h / 2) * shape.dilation_h;
    const int64_t right = (codes[c] % shape.kernel_w - shape.kernel_w / 2) * shape.dilation_w;
    for (int64_t row = 0; row < shape.height; ++row) {
      for (int64_t column = 0; column < shape.width; ++column) {
        const int64_t iy = row + down, ix = column + right;
        const bool inside = iy >= 0 && iy < shape.height && ix >= 0 && ix < shape.width;
        *y++ = inside ? x[(c * shape.height + iy) * shape.width + ix] : T{0};
      }
    }
  }
}
template void shift(const ShiftShape& shape, const uint16_t* codes, const float* x, float* y);
template void shift(const ShiftShape& shape, const uint16_t* codes, const uint8_t* x, uint8_t* y);

void active_shift(const ActiveShiftShape& shape, const float* shifts, const float* x, float* y) {
  // In double, any float may be added to a row.
  const auto pixel = [&](int64_t c, double row, double column) {
    const bool inside =
        row >= 0 && row < static_cast<double>(shape.in_h) && column >= 0 && column < static_cast<double>(shape.in_w);
    if (!inside) return 0.0f;
    return x[(c * shape.in_h + static_cast<int64_t>(row)) * shape.in_w + static_cast<int64_t>(column)];
  };
  for (int64_t c = 0; c < shape.channels; ++c) {
    const float low_row = std::floor(shifts[2 * c]), low_column = std::floor(shifts[2 * c + 1]);
    const float down = shifts[2 * c] - low_row, right = shifts[2 * c + 1] - low_column;
    for (int64_t row = 0; row < shape.in_h; row += shape.stride_h) {
      for (int64_t column = 0; column < shape.in_w; column += shape.stride_w) {
        float sum = 0;
        for (const int below : {0, 1}) {
          for (const int behind : {0, 1}) {
            const float weight = (below == 0 ? 1 - down : down) * (behind == 0 ? 1 - right : right);
            if (weight == 0) continue;
            sum += weight * pixel(c, static_cast<double>(row + below) + static_cast<double>(low_row),
                                  static_cast<double>(column + behind) + static_cast<double>(low_column));
          }
        }
        *y++ = sum;
      }
    }
  }
}

}  // namespace onetap::reference
