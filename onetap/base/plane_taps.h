// Planes that are sums of a few pixels of other planes, moved: what shifts, active shifts and depthwise convolutions
// come down to.
#pragma once

#include <cstdint>
#include <vector>

namespace onetap {

// Adds weight * x[row * stride + down][column * stride + right] of a plane to the result's [row][column]; nothing where
// that lies outside of the plane.
struct PlaneTap {
  int32_t plane = 0;  // of those that the result may read
  int32_t down = 0, right = 0;
  float weight = 1;
};

struct PlaneTaps {
  std::vector<PlaneTap> taps;
  std::vector<int64_t> from = {0};  // taps of result d: [from[d], from[d + 1])

  void end_result() { from.push_back(static_cast<int64_t>(taps.size())); }
};

// Whether any of `results` rows (or columns) reads inside of a plane of `extent`, moved by `offset`.
constexpr bool reaches(int64_t offset, int64_t stride, int64_t results, int64_t extent) {
  const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  return first < results && first * stride + offset < extent;
}

}  // namespace onetap
