// The attention of one set of positions, and its gradient, in a thread's registers.
#pragma once

#include "onetap/nn/attention_constants.h"

namespace onetap::fused::cuda {

// P of one slice, as nn/attention.cpp computes it: N less its maximum, in units of a power of two near the largest
// difference, so that it is the same for logits of any scale. NaN among the logits makes all of P NaN.
template <int S>
struct Attention {
  static constexpr float kDegrees = S > 1 ? S - 1 : 1;  // of freedom
  float p[S];
  float best, inverse_sd, mean;  // sd and mean in units of 1 / (lift * inverse_unit)
  float lift, inverse_unit;      // apart, for their product may be too large
  bool flat;

  __device__ Attention(const float* a, float temperature) {
    float least = INFINITY;
    best = -INFINITY;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      best = fmaxf(best, a[s]);
      least = fminf(least, a[s]);
    }
    choose_unit(best - least);
    float sum = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) sum += below(a[s]);
    mean = sum / S;
    float squares = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) squares += (below(a[s]) - mean) * (below(a[s]) - mean);
    inverse_sd = flat ? 1.0f : rsqrtf(squares / kDegrees);
    const float factor = inverse_sd / temperature;
    float total = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      const float exponent = below(a[s]) * factor;
      // Not fmaxf, which would lose a NaN.
      total += p[s] = __expf(exponent < nn::kDeepestExponent ? nn::kDeepestExponent : exponent);
    }
    const float share = 1.0f / total;
#pragma unroll
    for (int s = 0; s < S; ++s) p[s] *= share;
  }

  // The position of the hard max: ties go to the lower one.
  __device__ int first_best(const float* a) const {
    int at = S - 1;
#pragma unroll
    for (int s = S - 1; s >= 0; --s) at = a[s] == best ? s : at;
    return at;
  }

  // From the gradients of p to those of the logits a.
  __device__ void backward(const float* a, const float (&dp)[S], float temperature, float (&da)[S]) const {
    float mixed = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) mixed += p[s] * dp[s];
    float along = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      const bool cut = below(a[s]) * inverse_sd / temperature < nn::kDeepestExponent;
      da[s] = cut ? 0.0f : p[s] * (dp[s] - mixed) / temperature;
      along += da[s] * below(a[s]);
    }
    const float bend = flat ? 0.0f : along * inverse_sd * inverse_sd * inverse_sd / kDegrees;
#pragma unroll
    for (int s = 0; s < S; ++s) da[s] = (da[s] * inverse_sd - bend * (below(a[s]) - mean)) * inverse_unit * lift;
  }

 private:
  // At most 0; the largest difference of the slice comes to between 1 and 2.
  __device__ float below(float a) const {
    return (a - best) * lift * inverse_unit;
  }

  __device__ void choose_unit(float range) {
    flat = range == 0.0f;
    lift = inverse_unit = 1.0f;
    if (flat) return;
    if (range < 0x1p-60f) lift = 0x1p+88f;  // denormal numbers become ordinary ones
    // 2^-e for a number of 2^e to 2^(e + 1), by its bits; 2^-127 where that would be the next smaller power.
    const int exponent = __float_as_int(range * lift) & 0x7f800000;
    inverse_unit = __int_as_float(max(0x7f000000 - exponent, 0x00400000));
  }
};

}  // namespace onetap::fused::cuda
