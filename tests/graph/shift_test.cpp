#include "onetap/graph/shift.h"

#include "onetap/graph/op.h"
#include "tests/support/support.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace onetap {
namespace {

using testing::expect_error;

Node shift_node(Extent2 kernel, std::vector<int64_t> counts = {}) {
  Node node = default_node(Op::kShift);
  node.kernel = kernel;
  node.counts = std::move(counts);
  return node;
}

// Wu et al., as their kernel computes it: for c < R = floor(C / k²) k², dx = c mod k - k/2, dy = (c div k) mod k - k/2;
// the channels that are left do not move.
TEST(ShiftCodes, AreTheTableOfWuEtAl) {
  for (const int64_t k : {1, 3, 5, 7}) {
    for (const int64_t channels : {1, 8, 9, 10, 17, 18, 25, 26, 49, 83, 96, 130}) {
      const std::vector<uint16_t> codes = shift_codes(shift_node({k, k}), channels);
      ASSERT_EQ(codes.size(), static_cast<size_t>(channels));
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t code = codes[static_cast<size_t>(c)];
        const int64_t dy = code / k - k / 2, dx = code % k - k / 2;
        const bool moves = c < channels / (k * k) * (k * k);
        EXPECT_EQ(dx, moves ? c % k - k / 2 : 0) << k << " " << channels << " " << c;
        EXPECT_EQ(dy, moves ? c / k % k - k / 2 : 0) << k << " " << channels << " " << c;
      }
    }
  }
}

TEST(ShiftCodes, CountsGiveNeighbouringChannelsOnePositionEach) {
  EXPECT_EQ(shift_codes(shift_node({3, 3}, {2, 0, 0, 0, 1, 0, 0, 0, 3}), 6), (std::vector<uint16_t>{0, 0, 4, 8, 8, 8}));
  EXPECT_EQ(shift_codes(shift_node({1, 3}, {1, 2, 1}), 4), (std::vector<uint16_t>{0, 1, 1, 2}));
}

TEST(ShiftCodes, KernelsNeedNotBeSquare) {
  // 2 rounds of 3 positions, and one channel that stays at the centre, position 1.
  EXPECT_EQ(shift_codes(shift_node({3, 1}), 7), (std::vector<uint16_t>{0, 1, 2, 0, 1, 2, 1}));
}

TEST(DivideChannels, AddsUpWithTheLargestRemaindersFirst) {
  EXPECT_EQ(divide_channels(9, std::vector<double>(9, 1.0)), std::vector<int64_t>(9, 1));
  // 10 / 9 each: one more for the first of equals.
  EXPECT_EQ(divide_channels(10, std::vector<double>(9, 0.5)), (std::vector<int64_t>{2, 1, 1, 1, 1, 1, 1, 1, 1}));
  // 10 x (.14, .56, .30): 1.4, 5.6, 3.0, and the channel that is missing goes to .6.
  EXPECT_EQ(divide_channels(10, {14, 56, 30}), (std::vector<int64_t>{1, 6, 3}));
  EXPECT_EQ(divide_channels(3, {0, 0, 1e-12}), (std::vector<int64_t>{0, 0, 3}));
  EXPECT_EQ(divide_channels(0, {1, 2}), (std::vector<int64_t>{0, 0}));
}

// Nobody gets more than one channel more or less than the exact share.
TEST(DivideChannels, StaysNearTheProportions) {
  const std::vector<double> proportions = {.138, .1, .145, .09, .075, .092, .14, .1, .12};
  const double sum = std::accumulate(proportions.begin(), proportions.end(), 0.0);
  for (int64_t channels = 1; channels < 400; ++channels) {
    const std::vector<int64_t> counts = divide_channels(channels, proportions);
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), channels);
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(counts[i]), proportions[i] / sum * static_cast<double>(channels), 1.0);
    }
  }
}

TEST(DivideChannels, RefusesWhatIsNoProportion) {
  for (const std::vector<double>& bad :
       {std::vector<double>{1, -0.5}, {1, std::nan("")}, {1, std::numeric_limits<double>::infinity()}}) {
    expect_error(ErrorKind::kUsage, "expected proportions of at least 0", [&] { divide_channels(9, bad); });
  }
  expect_error(ErrorKind::kUsage, "a sum above 0", [] { divide_channels(9, {0, 0}); });
  expect_error(ErrorKind::kUsage, "a sum above 0", [] { divide_channels(9, {}); });
}

}  // namespace
}  // namespace onetap
