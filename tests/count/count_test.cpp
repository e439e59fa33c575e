#include "onetap/count/count.h"

#include "onetap/graph/method.h"
#include "onetap/graph/zoo/zoo.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

NetworkCount count(const std::string& arch, int64_t width, int64_t classes, int64_t taps, int64_t share = 1,
                   char shortcut = 'B', CountRules rules = CountRules::kPaper) {
  NetSpec spec;
  spec.arch = arch;
  spec.width = width;
  spec.classes = classes;
  spec.shortcut = shortcut;
  Graph graph = build_network(spec);
  if (taps > 0) {
    Method sal;
    sal.kind = Method::Kind::kSal;
    sal.taps = taps;
    sal.share = share;
    apply_method(graph, sal, "");
  }
  return count_network(graph, rules);
}

// ResNet-20, by hand: stem 27w; 3x3 slices 116w^2 (6w^2 + 2w^2 + 5*4w^2 + 8w^2 + 5*16w^2); projections 10w^2; batch
// norm 98w; fc 40w + 10. A kept weight costs one word and 4 bits of position.
double resnet20_dense(double w) {
  return 1054 * w * w + 165 * w + 10;
}
double resnet20_sal(double w, double taps) {
  return 116 * taps * 1.125 * w * w + 10 * w * w + 165 * w + 10;
}

TEST(Count, ResNet20FollowsThePapersFormulas) {
  for (int64_t w : {8, 10, 16, 30, 32, 34, 64, 83, 120}) {
    const auto x = static_cast<double>(w);
    EXPECT_EQ(count("resnet20", w, 10, 0).params, resnet20_dense(x));
    EXPECT_EQ(count("resnet20", w, 10, 1).params, resnet20_sal(x, 1));
    EXPECT_EQ(count("resnet20", w, 10, 2).params, resnet20_sal(x, 2));
    EXPECT_EQ(count("resnet20", w, 100, 1).params, resnet20_sal(x, 1) + 360 * x + 90);
  }
}

// Published or derived in the literature, to the digit.
TEST(Count, ExactRows) {
  EXPECT_EQ(count("resnet20", 34, 10, 0).params, 1224044);
  EXPECT_EQ(count("resnet20", 34, 10, 0).macs, 183237968);
  EXPECT_EQ(count("resnet20", 83, 10, 1).params, 981609.5);
  EXPECT_EQ(count("resnet20", 83, 10, 1).macs, 129276152);
  EXPECT_EQ(count("resnet20", 83, 100, 1).params, 1011579.5);
  EXPECT_EQ(count("resnet20", 60, 10, 2).params, 985510);
  EXPECT_EQ(count("resnet20", 60, 10, 2).macs, 130685280);
  EXPECT_EQ(count("resnet56", 16, 10, 0).params, 855770);
  EXPECT_EQ(count("resnet56", 16, 10, 0).macs, 125747840);
  EXPECT_EQ(count("resnet56", 16, 10, 0, 1, 'A').params, 853018);
  EXPECT_EQ(count("resnet56", 16, 10, 0, 1, 'A').macs, 125485696);
  EXPECT_EQ(count("resnet56", 29, 10, 1).params, 366251);
  EXPECT_EQ(count("resnet56", 29, 10, 1).macs, 47306888);
  EXPECT_EQ(count("resnet50-cifar", 34, 100, 1).params, 3960207.5);
  EXPECT_EQ(count("resnet50-cifar", 54, 100, 0).params, 16910362);
  EXPECT_EQ(count("resnet50-cifar", 64, 100, 0).params, 23705252);
  EXPECT_EQ(count("resnet-w", 24, 1000, 0).params, 3200560);
  EXPECT_EQ(count("resnet-w", 16, 1000, 0).params, 1467288);
  EXPECT_EQ(count("resnet-w", 64, 1000, 1).params, 3353256);
  EXPECT_EQ(count("resnet-w", 32, 1000, 1).params, 971848);
}

TEST(Count, SharingStoresPositionsOncePerGroup) {
  // 116w^2 weights; positions of ceil(D/4) groups a layer: a quarter where 4 divides D.
  EXPECT_EQ(count("resnet20", 80, 10, 1, 4).params, 116 * 6400 * (1 + 0.125 / 4) + 10 * 6400 + 165 * 80 + 10);
  EXPECT_EQ(share_groups(83, 4), 21);
  EXPECT_EQ(share_groups(83, 83), 1);
  // MACs do not depend on sharing.
  EXPECT_EQ(count("resnet20", 83, 10, 1, 4).macs, count("resnet20", 83, 10, 1).macs);
}

TEST(Count, PositionBits) {
  EXPECT_EQ(position_bits(9), 4);
  EXPECT_EQ(position_bits(25), 5);
  EXPECT_EQ(position_bits(2), 1);
  EXPECT_EQ(position_bits(8), 3);
  EXPECT_EQ(position_bits(49), 6);
}

TEST(Count, PlainRulesCountWhatIsTrained) {
  // The dense network and as many logits as 3x3 weights in the blocks.
  EXPECT_EQ(count("resnet20", 16, 10, 1, 1, 'B', CountRules::kPlain).params, resnet20_dense(16) + 1044 * 256);
  EXPECT_EQ(count("resnet20", 16, 10, 1, 1, 'B', CountRules::kPlain).macs, count("resnet20", 16, 10, 0).macs);
}

}  // namespace
}  // namespace onetap
