#include "onetap/nn/channel_rows.h"

namespace onetap::nn {
namespace {

constexpr int kBlock = 16;  // rows that are added up in 32 bits

struct Pair {
  float first, second;
};

// Calls pair(i, c) for the element at i of channel c, over kRows rows from `at` on. The rows of a block are unrolled,
// so that channels become vectors.
template <int kRows, typename PairOf>
void add_block(int64_t at, int64_t channels, const PairOf& pair_of, double* __restrict__ first,
               double* __restrict__ second) {
  for (int64_t c = 0; c < channels; ++c) {
    float sum = 0, other = 0;
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const Pair pair = pair_of(at + row * channels + c, c);
      sum += pair.first;
      other += pair.second;
    }
    first[c] += static_cast<double>(sum);
    second[c] += static_cast<double>(other);
  }
}

template <typename PairOf>
void add_rows(const Rows& rows, const PairOf& pair_of, double* first, double* second) {
  int64_t row = 0;
  for (; row + kBlock <= rows.count; row += kBlock) {
    add_block<kBlock>(row * rows.channels, rows.channels, pair_of, first, second);
  }
  for (; row < rows.count; ++row) add_block<1>(row * rows.channels, rows.channels, pair_of, first, second);
}

}  // namespace

void add_moments(const Rows& rows, const float* x, const float* around, double* first, double* second) {
  const auto pair_of = [x, around](int64_t i, int64_t c) {
    const float off = x[i] - around[c];
    return Pair{off, off * off};
  };
  add_rows(rows, pair_of, first, second);
}

void add_products(const Rows& rows, const float* dy, const float* x, const float* around, double* first,
                  double* second) {
  const auto pair_of = [dy, x, around](int64_t i, int64_t c) { return Pair{dy[i], dy[i] * (x[i] - around[c])}; };
  add_rows(rows, pair_of, first, second);
}

void scale_rows(const Rows& rows, const float* __restrict__ x, const float* __restrict__ scale,
                const float* __restrict__ shift, float* __restrict__ y) {
  for (int64_t row = 0; row < rows.count; ++row, x += rows.channels, y += rows.channels) {
    for (int64_t c = 0; c < rows.channels; ++c) y[c] = x[c] * scale[c] + shift[c];
  }
}

void mix_rows(const Rows& rows, const float* __restrict__ y, const float* __restrict__ scale,
              const float* __restrict__ x, const float* __restrict__ tilt, const float* __restrict__ shift,
              float* __restrict__ z) {
  for (int64_t row = 0; row < rows.count; ++row, x += rows.channels, y += rows.channels, z += rows.channels) {
    for (int64_t c = 0; c < rows.channels; ++c) z[c] = y[c] * scale[c] + (x[c] * tilt[c] + shift[c]);
  }
}

}  // namespace onetap::nn
