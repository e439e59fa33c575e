// The triangle filter that resizes images, one output sample at a time. Constexpr, so that GPU code may call it.
#pragma once

#include <cstdint>

namespace onetap {

// Which input samples make an output sample, and how much of each. The triangle widens when shrinking (no aliasing).
struct Triangle {
  int64_t first = 0, count = 1;
  double offset = 0;  // from the output's centre to that of the first input
  double support = 1;
  double sum = 1;  // of the raw weights

  // Of input first + k, before it is divided by the sum.
  constexpr double raw(int64_t k) const {
    const double distance = offset + static_cast<double>(k);
    const double share = (distance < 0 ? -distance : distance) / support;
    return share < 1 ? 1 - share : 0;
  }
  constexpr float weight(int64_t k) const { return static_cast<float>(raw(k) / sum); }

  // For output `i` of `outputs` that cover [start, start + length) of `extent` input samples.
  static constexpr Triangle make(int64_t extent, double start, double length, int64_t outputs, int64_t i) {
    const double scale = length / static_cast<double>(outputs);
    Triangle t;
    t.support = scale > 1 ? scale : 1;
    const double centre = start + (static_cast<double>(i) + 0.5) * scale;
    t.first = within(whole(centre - t.support + 0.5), 0, extent - 1);
    t.count = within(whole(centre + t.support + 0.5), t.first + 1, extent) - t.first;
    t.offset = static_cast<double>(t.first) + 0.5 - centre;
    double sum = 0;
    for (int64_t k = 0; k < t.count; ++k) sum += t.raw(k);
    if (sum > 0) {
      t.sum = sum;
    } else {  // the centre lies outside the image: take the edge
      t.count = 1;
      t.offset = 0;
    }
    return t;
  }

 private:
  // std::floor, which is not constexpr.
  static constexpr int64_t whole(double x) {
    const auto cut = static_cast<int64_t>(x);
    return static_cast<double>(cut) > x ? cut - 1 : cut;
  }
  static constexpr int64_t within(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }
};

}  // namespace onetap
