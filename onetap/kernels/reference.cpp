#include "onetap/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap::reference {
namespace {

// The outputs i in [first, last) whose input i * stride + offset lies inside 0..extent-1.
struct Inside {
  int64_t first, last;
};

Inside inside(int64_t outputs, int64_t stride, int64_t offset, int64_t extent) {
  const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t last = extent - 1 - offset < 0 ? 0 : (extent - 1 - offset) / stride + 1;
  return {first, std::max(first, std::min(outputs, last))};
}

// y += weight * x, shifted to one position of the kernel.
void add_tap(const ConvShape& shape, int64_t position, float weight, const float* x, float* y) {
  const int64_t down = position / shape.kernel_w * shape.dilation_h - shape.padding_h;
  const int64_t right = position % shape.kernel_w * shape.dilation_w - shape.padding_w;
  const Inside rows = inside(shape.out_h(), shape.stride_h, down, shape.in_h);
  const Inside columns = inside(shape.out_w(), shape.stride_w, right, shape.in_w);
  for (int64_t row = rows.first; row < rows.last; ++row) {
    const float* from = x + (row * shape.stride_h + down) * shape.in_w + right;
    float* to = y + row * shape.out_w();
    if (shape.stride_w == 1) {
      for (int64_t i = columns.first; i < columns.last; ++i) to[i] += weight * from[i];
    } else {
      for (int64_t i = columns.first; i < columns.last; ++i) to[i] += weight * from[i * shape.stride_w];
    }
  }
}

}  // namespace

// Dense and tap convolutions differ in which positions they visit.
void conv(const ConvShape& shape, const ConvWeights& weights, const float* x, float* y) {
  const TapLayout layout = shape.layout();
  const int64_t in = shape.in_per_group(), taps = shape.taps_per_slice();
  const int64_t in_pixels = shape.in_h * shape.in_w, out_pixels = shape.out_h() * shape.out_w();
  for (int64_t d = 0; d < shape.out; ++d) {
    std::fill_n(y + d * out_pixels, out_pixels, weights.bias != nullptr ? weights.bias[d] : 0.0f);
    for (int64_t c = 0; c < in; ++c) {
      const float* from = x + (d / shape.out_per_group() * in + c) * in_pixels;
      for (int64_t i = 0; i < taps; ++i) {
        const int64_t position = shape.taps > 0 ? weights.positions[layout.first_code(d, c) + i] : i;
        if (position == layout.none()) continue;
        add_tap(shape, position, weights.weight[(d * in + c) * taps + i], from, y + d * out_pixels);
      }
    }
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
        for (int64_t k = 0; k < shape.kernel_h * shape.kernel_w; ++k) {
          const int64_t iy = row * shape.stride_h - shape.padding_h + k / shape.kernel_w;
          const int64_t ix = column * shape.stride_w - shape.padding_w + k % shape.kernel_w;
          if (iy < 0 || iy >= shape.in_h || ix < 0 || ix >= shape.in_w) continue;
          const float pixel = from[iy * shape.in_w + ix];
          if (!shape.is_max) {
            value += pixel;
          } else if (pixel > value || std::isnan(pixel)) {  // a NaN comes through, as in LibTorch
            value = pixel;
          }
        }
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

void subsample(const SubsampleShape& shape, const float* x, float* y) {
  const int64_t front = (shape.out - shape.in) / 2;
  for (int64_t d = 0; d < shape.out; ++d) {
    const int64_t c = d - front;
    for (int64_t iy = 0; iy < shape.in_h; iy += shape.stride_h) {
      for (int64_t ix = 0; ix < shape.in_w; ix += shape.stride_w) {
        *y++ = c >= 0 && c < shape.in ? x[(c * shape.in_h + iy) * shape.in_w + ix] : 0.0f;
      }
    }
  }
}

void shift(const ShiftShape& shape, const uint16_t* codes, const float* x, float* y) {
  for (int64_t c = 0; c < shape.channels; ++c) {
    const int64_t down = (codes[c] / shape.kernel_w - shape.kernel_h / 2) * shape.dilation_h;
    const int64_t right = (codes[c] % shape.kernel_w - shape.kernel_w / 2) * shape.dilation_w;
    for (int64_t row = 0; row < shape.height; ++row) {
      for (int64_t column = 0; column < shape.width; ++column) {
        const int64_t iy = row + down, ix = column + right;
        const bool inside = iy >= 0 && iy < shape.height && ix >= 0 && ix < shape.width;
        *y++ = inside ? x[(c * shape.height + iy) * shape.width + ix] : 0.0f;
      }
    }
  }
}

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
