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

}  // namespace
}  // namespace onetap
