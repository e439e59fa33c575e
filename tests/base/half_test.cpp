#include "onetap/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace onetap {
namespace {

TEST(Half, KnownValues) {
  EXPECT_EQ(half_from_float(1.0f), 0x3c00);
  EXPECT_EQ(half_from_float(-2.0f), 0xc000);
  EXPECT_EQ(half_from_float(65504.0f), 0x7bff);  // the largest
  EXPECT_EQ(half_from_float(65520.0f), 0x7c00);  // rounds up to infinity
  EXPECT_EQ(half_from_float(std::ldexp(1.0f, -24)), 0x0001);
  EXPECT_EQ(half_from_float(std::ldexp(1.0f, -26)), 0x0000);
  EXPECT_EQ(half_from_float(0.1f), 0x2e66);
  EXPECT_EQ(half_from_float(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_TRUE(std::isnan(float_from_half(half_from_float(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Half, EveryHalfComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = float_from_half(half);
    if (std::isnan(value)) continue;
    ASSERT_EQ(half_from_float(value), half) << bits;
  }
}

// Between two neighbours the nearer wins, and at the middle the even one.
TEST(Half, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const float a = float_from_half(low), b = float_from_half(high);
    const float middle = a + (b - a) / 2;
    ASSERT_EQ(half_from_float(middle), (bits % 2 == 0) ? low : high) << bits;
    ASSERT_EQ(half_from_float(std::nextafter(middle, 0.0f)), low) << bits;
    ASSERT_EQ(half_from_float(std::nextafter(middle, 1e9f)), high) << bits;
  }
}

}  // namespace
}  // namespace onetap
