// Draws of mixup and CutMix: their distributions and what they say of pixels and labels.
#include "onetap/data/mix.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onetap {
namespace {

bool same(const Mix& a, const Mix& b) {
  return a.share == b.share && a.weight == b.weight && a.top == b.top && a.left == b.left && a.bottom == b.bottom &&
         a.right == b.right;
}

// Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1)).
TEST(Mix, SharesOfMixupFollowTheBetaDistribution) {
  for (const double shape : {0.2, 1.0, 4.0}) {
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (int step = 0; step < kDraws; ++step) {
      const Mix mix = draw_mix({shape, 0}, 32, 1, step);
      EXPECT_EQ(mix.weight, mix.share);
      EXPECT_FALSE(mix.covers(0, 0));
      sum += mix.share;
      squares += (mix.share - 0.5) * (mix.share - 0.5);
    }
    const double variance = 1 / (4 * (2 * shape + 1));
    // Five standard errors of the mean; the variance's own is at most that of a coin.
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << shape;
    EXPECT_NEAR(squares / kDraws, variance, 0.05 * variance) << shape;
  }
}

TEST(Mix, BoxesOfCutMixLieInTheImageAndTheirAreaIsTheOtherShare) {
  int large = 0, empty = 0;
  for (int step = 0; step < 5000; ++step) {
    const Mix mix = draw_mix({0, 1}, 20, 2, step);
    EXPECT_EQ(mix.weight, 1);
    int covered = 0;
    for (int y = -3; y < 23; ++y) {
      for (int x = -3; x < 23; ++x) {
        const bool inside = y >= 0 && y < 20 && x >= 0 && x < 20;
        if (!mix.covers(y, x)) continue;
        EXPECT_TRUE(inside);
        ++covered;
      }
    }
    EXPECT_NEAR(mix.share, 1 - covered / 400.0, 1e-6);
    large += covered > 200 ? 1 : 0;
    empty += covered == 0 ? 1 : 0;
  }
  // Areas are uniform but for what lies beyond an edge, which makes boxes smaller: the largest have less than half.
  EXPECT_GT(large, 500);
  EXPECT_LT(large, 2500);
  EXPECT_LT(empty, 250);  // 1 - share of less than 1/400
}

TEST(Mix, BothTakeTurnsByACoin) {
  int cuts = 0;
  for (int step = 0; step < 2000; ++step) cuts += draw_mix({0.5, 0.5}, 32, 3, step).weight == 1 ? 1 : 0;
  EXPECT_NEAR(cuts, 1000, 5 * std::sqrt(500.0));
}

TEST(Mix, DependsOnSeedAndStepAlone) {
  const MixOptions both{1, 1};
  EXPECT_TRUE(same(draw_mix(both, 32, 4, 17), draw_mix(both, 32, 4, 17)));
  EXPECT_FALSE(same(draw_mix(both, 32, 4, 17), draw_mix(both, 32, 4, 18)));
  EXPECT_FALSE(same(draw_mix(both, 32, 4, 17), draw_mix(both, 32, 5, 17)));
  EXPECT_TRUE(same(draw_mix({}, 32, 4, 17), Mix()));
}

TEST(Mix, TinyShapesStayNumbers) {
  for (int step = 0; step < 200; ++step) {
    const float share = draw_mix({1e-3, 0}, 32, 6, step).share;
    EXPECT_TRUE(share >= 0 && share <= 1) << share;
  }
}

}  // namespace
}  // namespace onetap
