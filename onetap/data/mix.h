// Training images mixed in pairs: mixup (Zhang et al., 2018) and CutMix (Yun et al., 2019). One draw holds for a whole
// batch, in which the first image is paired with the last one, the second with the last but one, and so on.
#pragma once

#include <cstdint>

namespace onetap {

struct MixOptions {
  double mixup = 0, cutmix = 0;  // both shapes of Beta(a, a); 0: never

  bool active() const { return mixup > 0 || cutmix > 0; }
};

// How an image and the one it is paired with become one.
struct Mix {
  float share = 1;   // of its own label; the other label has the rest
  float weight = 1;  // of its own pixels outside of the box
  // The box, whose pixels are the other image's; the last row and column are not in it.
  float top = 0, left = 0, bottom = 0, right = 0;

  constexpr bool covers(int64_t y, int64_t x) const {
    const auto row = static_cast<float>(y), column = static_cast<float>(x);
    return row >= top && row < bottom && column >= left && column < right;
  }
};

// For step `step` of a run, counted from 0, on square images of `size`.
Mix draw_mix(const MixOptions& options, int64_t size, uint64_t seed, int64_t step);

}  // namespace onetap
