#include "onetap/count/count.h"

#include "onetap/count/memory.h"
#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

NetworkCount count(const std::string& arch, int64_t width, int64_t classes, int64_t taps, BlockShare share = {},
                   char shortcut = 'B', CountRules rules = CountRules::kPaper) {
  NetSpec spec;
  spec.arch = arch;
  spec.width = width;
  spec.classes = classes;
  spec.shortcut = shortcut;
  Graph graph = build_network(spec);
  if (taps > 0) apply_method(graph, sal_method(taps, share), "");
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

TEST(Count, ShortcutAIsFree) {
  EXPECT_EQ(count("resnet56", 16, 10, 0, 1, 'A').params, 853018);
  EXPECT_EQ(count("resnet56", 16, 10, 0, 1, 'A').macs, 125485696);
}

// ResNet-20 on 32x32, by hand: conv outputs 11776w in the main path and 768w in the two projections, as many batch
// norm outputs, 4w pooled values, 3072 pixels, 10 results; a pruned network counts a projection once.
TEST(Count, BothCountingsOfShortcuts) {
  NetSpec spec;
  spec.arch = "resnet20";
  for (const int64_t w : {8, 34, 83}) {
    spec.width = w;
    const Graph graph = build_network(spec);
    const auto x = static_cast<double>(w);
    const auto activations = [&](ShortcutRule rule) {
      return count_network(graph, CountOptions{CountRules::kPaper, rule}).activations;
    };
    EXPECT_EQ(activations(ShortcutRule::kTwice), 25092 * x + 3082);
    EXPECT_EQ(activations(ShortcutRule::kOnce), 24324 * x + 3082);
    EXPECT_EQ(activations(ShortcutRule::kAuto), activations(ShortcutRule::kTwice));
  }
}

TEST(Count, PlainActivationsAreOutputsOfConvAndLinear) {
  EXPECT_EQ(count("resnet20", 16, 10, 1, 1, 'B', CountRules::kPlain).activations, (11776 + 768) * 16 + 10);
}

// By hand: 8 x 8 pixels of 4 channels, of which 2x2 windows leave 4 x 4.
TEST(Count, OpsWithoutWeightsCostNothingButTheGlobalPool) {
  const NetworkCount cost = count_network(
      parse_network(
          "onetap-net 1\nx = input 4x8x8\na = maxpool x kernel=2 stride=2\nb = avgpool x kernel=2 stride=2\n"
          "c = concat a b\nd = pad c sides=1,1,1,1\ne = sigmoid d\nm = mul d e\ns = subsample m out=8 stride=2\n"
          "h = shift s kernel=3\ng = gap h\nf = flatten g\n"),
      CountRules::kPaper);
  EXPECT_EQ(cost.params, 0);
  EXPECT_EQ(cost.macs, 0);
  for (const LayerCount& layer : cost.layers) {
    EXPECT_EQ(layer.activations, layer.name == "x" ? 4 * 8 * 8 : layer.name == "g" ? 8 : 0) << layer.name;
  }
  // A sum without a ReLU after it is kept, with the value that waits for it.
  const NetworkCount sum = count_network(
      parse_network("onetap-net 1\nx = input 4x8x8\na = affine x\ns = add a x\ng = gap s\n"), CountRules::kPaper);
  EXPECT_EQ(sum.params, 2 * 4);
  EXPECT_EQ(sum.activations, (1 + 1 + 2) * 4 * 8 * 8 + 4);
}

// conv (4 values wide) -> relu in place -> conv: input and first output, then both conv outputs.
TEST(Memory, PeakIsTheLargestMomentOfTheSchedule) {
  Graph chain = parse_network(
      "onetap-net 1\nx = input 3x8x8\na = conv x out=4\nr = relu a\nb = conv r out=5\ng = gap b\nf = linear g out=2\n");
  EXPECT_EQ(peak_activations(chain), (4 + 5) * 64);
  // The block's input waits for the sum: three values of 4x8x8 are alive at the second convolution.
  Graph residual =
      parse_network("onetap-net 1\nx = input 4x8x8\na = conv x out=4\nb = conv a out=4\ns = add b x\ng = gap s\n");
  EXPECT_EQ(peak_activations(residual), 3 * 4 * 64);
  // Every activation function works in place, and so does a product; not in a factor per channel, which is too small.
  const std::string head = "onetap-net 1\nx = input 1x8x8\na = conv x out=4\n";
  EXPECT_EQ(peak_activations(parse_network(head + "b = hardswish a\ng = gap b\n")), (1 + 4) * 64);
  const std::string gated = head + "g = gap a\ns = sigmoid g\nm = mul a s\n";
  EXPECT_EQ(peak_activations(parse_network(gated + "h = gap m\n")), (1 + 4) * 64);
  EXPECT_EQ(peak_activations(parse_network(gated + "r = add m a\nh = gap r\n")), 2 * 4 * 64 + 4);
}

TEST(Count, SharingStoresPositionsOncePerGroup) {
  // 116w^2 weights; positions of ceil(D/4) groups a layer: a quarter where 4 divides D.
  EXPECT_EQ(count("resnet20", 80, 10, 1, 4).params, 116 * 6400 * (1 + 0.125 / 4) + 10 * 6400 + 165 * 80 + 10);
  // Blocks of 4 x 4: a sixteenth of them, where 4 divides both.
  EXPECT_EQ(count("resnet20", 80, 10, 1, {4, 4}).params, 116 * 6400 * (1 + 0.125 / 16) + 10 * 6400 + 165 * 80 + 10);
  // All outputs: 4 bits, an eighth of a word, for every input of a layer. Inputs of the 3x3 layers: 6w + w + 5 * 2w +
  // 2w + 5 * 4w = 39w.
  EXPECT_EQ(count("resnet20", 80, 10, 1, BlockShare::kAllOutputs).params,
            116 * 6400 + 39 * 80 * 0.125 + 10 * 6400 + 165 * 80 + 10);
  // MACs do not depend on sharing.
  for (const BlockShare& share : {BlockShare(4), {4, 4}, {BlockShare::kAllOutputs, 4}}) {
    EXPECT_EQ(count("resnet20", 83, 10, 1, share).macs, count("resnet20", 83, 10, 1).macs);
  }
}

// 6 inputs, 10 outputs, blocks of 4 x 4: 3 x 2 sets of 9 logits.
TEST(Count, LogitsAreOnePerPositionOfASet) {
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 6x8x8\na = conv x out=10 kernel=3 pad=1 method=sal taps=2 share=4x4\ng = gap a\n");
  EXPECT_EQ(count_network(graph, CountRules::kPlain).params, 10 * 6 * 9 + 2 * 3 * 2 * 9);
  EXPECT_EQ(count_network(graph, CountRules::kPaper).params, 10 * 6 * 2 + 2 * 3 * 2 * 4 / 32.0);
}

TEST(Count, PlainRulesCountWhatIsTrained) {
  // The dense network and as many logits as 3x3 weights in the blocks.
  EXPECT_EQ(count("resnet20", 16, 10, 1, 1, 'B', CountRules::kPlain).params, resnet20_dense(16) + 1044 * 256);
  EXPECT_EQ(count("resnet20", 16, 10, 1, 1, 'B', CountRules::kPlain).macs, count("resnet20", 16, 10, 0).macs);
}

}  // namespace
}  // namespace onetap
