// What the elementwise functions compute, of one number: for the plain loops and for the steps of the runtime alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace onetap {

enum class Activation { kRelu6, kSigmoid, kHardSigmoid, kHardSwish, kSilu };

template <Activation kind>
float activate(float x) {
  switch (kind) {
    case Activation::kRelu6:
      return std::min(std::max(x, 0.0f), 6.0f);
    case Activation::kSigmoid:
      return 1.0f / (1.0f + std::exp(-x));
    case Activation::kHardSigmoid:
      return std::min(std::max(x + 3.0f, 0.0f), 6.0f) / 6.0f;
    case Activation::kHardSwish:
      return x * (std::min(std::max(x + 3.0f, 0.0f), 6.0f) / 6.0f);
    case Activation::kSilu:
      return x / (1.0f + std::exp(-x));
  }
  return x;
}

// x and y may be the same.
template <Activation kind>
void activate_all(int64_t count, const float* x, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = activate<kind>(x[i]);
}

}  // namespace onetap
