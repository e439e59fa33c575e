#include "onetap/kernels/reference.h"

#include <gtest/gtest.h>

#include <vector>

namespace onetap {
namespace {

std::vector<float> subsample(const reference::SubsampleShape& shape, const std::vector<float>& x, size_t count) {
  std::vector<float> y(count, -1.0f);
  reference::subsample(shape, x.data(), y.data());
  return y;
}

// By hand: two planes of 3 rows and 4 columns.
//    1  2  3  4      13 14 15 16
//    5  6  7  8      17 18 19 20
//    9 10 11 12      21 22 23 24
TEST(Reference, SubsampleByHand) {
  using V = std::vector<float>;
  V x(24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  // Rows 0 and 2, columns 0 and 2.
  EXPECT_EQ(subsample({2, 3, 4, 2, 2, 2}, x, 8), (V{1, 3, 9, 11, 13, 15, 21, 23}));
  // All rows, columns 0 and 3; one more channel goes behind: (3 - 2) / 2 = 0 in front.
  EXPECT_EQ(subsample({2, 3, 4, 3, 1, 3}, x, 18), (V{1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 0, 0, 0, 0, 0, 0}));
  // Rows 0 and 2, columns 0 and 3; of three more channels one goes in front and two behind.
  EXPECT_EQ(subsample({2, 3, 4, 5, 2, 3}, x, 20), (V{0, 0, 0, 0, 1, 4, 9, 12, 13, 16, 21, 24, 0, 0, 0, 0, 0, 0, 0, 0}));
}

// By hand, on a plane of 2 rows and 3 columns: 1 2 3 / 4 5 6.
TEST(Reference, ShiftByHand) {
  using V = std::vector<float>;
  const V plane = {1, 2, 3, 4, 5, 6};
  const auto shift = [&](uint16_t code, int64_t dilation_h, int64_t dilation_w) {
    V y(6, -1.0f);
    reference::shift({1, 2, 3, 3, 3, dilation_h, dilation_w}, &code, plane.data(), y.data());
    return y;
  };
  EXPECT_EQ(shift(4, 1, 1), plane);                  // the centre
  EXPECT_EQ(shift(0, 1, 1), (V{0, 0, 0, 0, 1, 2}));  // from above left
  EXPECT_EQ(shift(5, 1, 1), (V{2, 3, 0, 5, 6, 0}));  // from the right
  EXPECT_EQ(shift(7, 1, 1), (V{4, 5, 6, 0, 0, 0}));  // from below
  EXPECT_EQ(shift(5, 1, 2), (V{3, 0, 0, 6, 0, 0}));  // two columns
  EXPECT_EQ(shift(7, 2, 1), V(6, 0.0f));             // two rows: none is left
}

// y[h][w] = x at (h * stride + rows, w * stride + columns), between the four pixels around that place.
TEST(Reference, ActiveShiftByHand) {
  using V = std::vector<float>;
  const V plane = {1, 2, 3, 4, 5, 6};
  const auto shift = [&](V by, int64_t stride, size_t count) {
    V y(count, -1.0f);
    reference::active_shift({1, 2, 3, stride, stride}, by.data(), plane.data(), y.data());
    return y;
  };
  EXPECT_EQ(shift({0, 0}, 1, 6), plane);
  EXPECT_EQ(shift({1, 0}, 1, 6), (V{4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(shift({0, -1}, 1, 6), (V{0, 1, 2, 0, 4, 5}));
  // Half a column to the right: (1 + 2) / 2, (2 + 3) / 2, 3 / 2, ...
  EXPECT_EQ(shift({0, 0.5f}, 1, 6), (V{1.5f, 2.5f, 1.5f, 4.5f, 5.5f, 3}));
  // A quarter row up: 3/4 of the row itself and 1/4 of the one above.
  EXPECT_EQ(shift({-0.25f, 0}, 1, 6), (V{0.75f, 1.5f, 2.25f, 3.25f, 4.25f, 5.25f}));
  // Both, at the first pixel: rows 0 (3/4) and -1 (1/4, outside), columns 0 and 1 (1/2 each).
  EXPECT_EQ(shift({-0.25f, 0.5f}, 1, 6)[0], 0.75f * 1.5f);
  // Stride 2: row 0, columns 0 and 2, each half a column further.
  EXPECT_EQ(shift({0, 0.5f}, 2, 2), (V{1.5f, 1.5f}));
  EXPECT_EQ(shift({0.5f, 1}, 2, 2), (V{0.5f * 2 + 0.5f * 5, 0}));
  // Far away there is nothing, however far.
  for (const float far : {7.0f, -4.5f, 1e10f, -1e10f, 3e38f, -3e38f}) {
    EXPECT_EQ(shift({far, 0}, 1, 6), V(6, 0.0f)) << far;
    EXPECT_EQ(shift({0.5f, far}, 2, 2), V(2, 0.0f)) << far;
  }
}

}  // namespace
}  // namespace onetap
