// Loops over activations in channels-last memory: rows of `channels` floats, one row for each pixel.
#pragma once

#include <cstdint>

namespace onetap::nn {

struct Rows {
  int64_t count = 0, channels = 0;
};

// Adds up in 32 bits over a few rows and in 64 bits over all: a plain sum of 100,000 floats loses five digits.
// first[c] += sum(x - around), second[c] += sum((x - around)^2).
void add_moments(const Rows& rows, const float* x, const float* around, double* first, double* second);
// first[c] += sum(dy), second[c] += sum(dy * (x - around)).
void add_products(const Rows& rows, const float* dy, const float* x, const float* around, double* first,
                  double* second);

// y = x * scale + shift.
void scale_rows(const Rows& rows, const float* x, const float* scale, const float* shift, float* y);
// z = y * scale + x * tilt + shift.
void mix_rows(const Rows& rows, const float* y, const float* scale, const float* x, const float* tilt,
              const float* shift, float* z);

}  // namespace onetap::nn
