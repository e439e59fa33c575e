// Mixed batches, pixel by pixel.
#include "onetap/batches/mix.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

TEST(MixedBatches, AreWhatTheDrawSaysPixelByPixel) {
  torch::manual_seed(1);
  const auto images = torch::randn({5, 3, 6, 6}).contiguous(torch::MemoryFormat::ChannelsLast);
  const Mix draws[] = {{0.3f, 0.3f, 0, 0, 0, 0}, {0.75f, 1, 1, 2, 4, 5}, {0, 1, 0, 0, 6, 6}, {1, 1, 0, 0, 0, 0}};
  for (const Mix& mix : draws) {
    const auto got = mixed(images, mix);
    EXPECT_TRUE(got.is_contiguous(torch::MemoryFormat::ChannelsLast));
    for (int64_t n = 0; n < 5; ++n) {
      for (int64_t y = 0; y < 6; ++y) {
        for (int64_t x = 0; x < 6; ++x) {
          const float own = images[n][1][y][x].item<float>(), other = images[4 - n][1][y][x].item<float>();
          const float expected = mix.covers(y, x) ? other : mix.weight * own + (1 - mix.weight) * other;
          ASSERT_NEAR(got[n][1][y][x].item<float>(), expected, 1e-6) << n << ' ' << y << ' ' << x;
        }
      }
    }
  }
  EXPECT_TRUE(mixed(images, {}).equal(images));
  EXPECT_EQ(mixed(images.to(torch::kBFloat16), draws[0]).scalar_type(), torch::kBFloat16);
}

}  // namespace
}  // namespace onetap
