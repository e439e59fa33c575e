// What the rivals cost: published totals, and parts counted by hand.
#include "onetap/count/count.h"
#include "onetap/count/memory.h"
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "tests/count/pruned_resnet56.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace onetap {
namespace {

NetworkCount count_rival(const std::string& arch, std::optional<int64_t> width = {},
                         std::optional<int64_t> expansion = {}, int64_t classes = 10) {
  NetSpec spec;
  spec.arch = arch;
  spec.width = width;
  spec.expansion = expansion;
  spec.classes = classes;
  return count_network(build_network(spec), CountRules::kPaper);
}

const LayerCount& layer(const NetworkCount& network, const std::string& name) {
  const auto found = std::find_if(network.layers.begin(), network.layers.end(),
                                  [&](const LayerCount& candidate) { return candidate.name == name; });
  EXPECT_NE(found, network.layers.end()) << name;
  return *found;
}

TEST(CountRivals, ShiftResNetByExpansion) {
  const struct {
    const char* arch;
    double params[4];  // E = 1, 3, 6, 9
  } rows[] = {{"shiftresnet20", {34906, 95642, 186746, 277850}},
              {"shiftresnet56", {102106, 294554, 583226, 871898}},
              {"shiftresnet110", {202906, 592922, 1177946, 1762970}}};
  const int64_t expansions[] = {1, 3, 6, 9};
  for (const auto& row : rows) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(count_rival(row.arch, {}, expansions[i]).params, row.params[i]) << row.arch << " E=" << expansions[i];
      EXPECT_EQ(count_rival(row.arch, {}, expansions[i], 100).params, row.params[i] + 5850);
    }
  }
  // A ShiftResNet-20 of the size that Table 1 prints.
  EXPECT_EQ(count_rival("shiftresnet20", 97).params, 1201549);
  EXPECT_EQ(count_rival("shiftresnet20", 97, 1, 100).params, 1236559);
}

TEST(CountRivals, AsResNetByWidthAndExpansion) {
  const struct {
    int64_t width, expansion;
    double params;
  } rows[] = {{16, 1, 35386}, {16, 3, 97466}, {16, 6, 190586}, {16, 9, 283706}, {46, 1, 275596}, {88, 1, 992914}};
  for (const auto& row : rows) {
    EXPECT_EQ(count_rival("asresnet", row.width, row.expansion).params, row.params)
        << row.width << "x" << row.expansion;
  }
  // By hand: 27w x 1024 in the stem, 21504w² in the 1x1 convolutions and projections, 40w in the classifier.
  EXPECT_EQ(count_rival("asresnet").macs, 27 * 88 * 1024 + 21504 * 88 * 88 + 40 * 88);
}

TEST(CountRivals, AsResNetForImageNet) {
  const struct {
    int64_t width;
    double params, macs;
  } rows[] = {{32, 901256, 166.8e6}, {50, 1962950, 397.6e6}, {68, 3424460, 726.9e6}};
  for (const auto& row : rows) {
    const NetworkCount counted = count_rival("asresnet-w", row.width, 1, 1000);
    EXPECT_EQ(counted.params, row.params);
    EXPECT_NEAR(counted.macs, row.macs, 0.05e6);
  }
}

TEST(CountRivals, ShiftNet) {
  EXPECT_NEAR(count_rival("shiftnet-a", {}, {}, 1000).params, 4.19e6, 0.005e6);
  EXPECT_NEAR(count_rival("shiftnet-a", {}, {}, 1000).macs, 1424e6, 0.5e6);
  EXPECT_NEAR(count_rival("shiftnet-b", {}, {}, 1000).params, 1.18e6, 0.005e6);
  EXPECT_NEAR(count_rival("shiftnet-b", {}, {}, 1000).macs, 370.96e6, 0.005e6);
}

TEST(CountRivals, PrunedResNet56) {
  const NetworkCount a = count_network(testing::pruned_a(), CountRules::kPaper);
  EXPECT_EQ(a.params, 773336);
  EXPECT_NEAR(a.macs, 112.4e6, 0.05e6);
  const NetworkCount b = count_network(testing::pruned_b(), CountRules::kPaper);
  EXPECT_EQ(b.params, 735712);
  EXPECT_NEAR(b.macs, 90.91e6, 0.005e6);
}

// (1054w² + 67w) weights of one bit, 98w scales and shifts of batch norm, 10 biases.
TEST(CountRivals, BinaryWeightsAreOneBitAndTheRestAWord) {
  for (const char* method : {"bc", "bwn"}) {
    for (const int64_t w : {32, 60, 100}) {
      NetSpec spec;
      spec.width = w;
      Graph graph = build_network(spec);
      const double dense = count_network(graph, CountRules::kPaper).params;
      const double macs = count_network(graph, CountRules::kPaper).macs;
      apply_method(graph, Method(method), "");
      const auto x = static_cast<double>(w);
      EXPECT_EQ(count_network(graph, CountRules::kPaper).params, (1054 * x * x + 67 * x) / 32 + 98 * x + 10);
      EXPECT_EQ(count_network(graph, CountRules::kPaper).macs, macs);
      EXPECT_EQ(count_network(graph, CountRules::kPlain).params, dense);  // a word each while they are trained
    }
  }
}

// A frozen binary layer: 32 weights a word, a scale and a bias for every output.
TEST(CountRivals, FrozenBinaryLayersHaveAScalePerOutput) {
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 16x4x4\nc = conv x out=8 kernel=3 pad=1 bias=1 method=binary\n"
      "d = conv c out=8 method=binary\ng = gap d\nf = linear g out=10 method=binary\n");
  for (const CountRules rules : {CountRules::kPaper, CountRules::kPlain}) {
    const NetworkCount counted = count_network(graph, rules);
    EXPECT_EQ(layer(counted, "c").params, 16 * 8 * 9 / 32.0 + 8 + 8);
    EXPECT_EQ(layer(counted, "d").params, 8 * 8 / 32.0 + 8);
    EXPECT_EQ(layer(counted, "f").params, 8 * 10 / 32.0 + 10 + 10);
    EXPECT_EQ(layer(counted, "c").macs, 16 * 8 * 9 * 16);
    EXPECT_EQ(layer(counted, "f").macs, 80);
  }
}

TEST(CountRivals, ShiftsCostTheirTrainedNumbersAlone) {
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 9x8x8\ns = shift x kernel=3\na = activeshift s stride=2\nc = conv a out=4\n");
  for (const CountRules rules : {CountRules::kPaper, CountRules::kPlain}) {
    const NetworkCount counted = count_network(graph, rules);
    EXPECT_EQ(layer(counted, "s").params, 0);
    EXPECT_EQ(layer(counted, "s").activations, 0);
    EXPECT_EQ(layer(counted, "a").params, 2 * 9);
    EXPECT_EQ(counted.macs, 9 * 4 * 16);
  }
  EXPECT_EQ(layer(count_network(graph, CountRules::kPaper), "a").activations, 9 * 16);
}

TEST(CountRivals, DepthwiseConvolutionsHaveOneFilterPerChannel) {
  const NetworkCount counted = count_rival("mobilenetv2");
  EXPECT_EQ(layer(counted, "layer3.0.conv2").params, 6 * 24 * 9);
  EXPECT_EQ(layer(counted, "layer3.0.conv2").macs, 6 * 24 * 9 * 16 * 16);
}

// Sums of MobileNetV2 have no ReLU: two values beside those of the main path, of which a projection is one.
TEST(CountRivals, ASumWithoutAReluIsAValue) {
  const NetworkCount counted = count_rival("mobilenetv2");
  const double projected = 16 * 32 * 32, plain = 24 * 32 * 32;
  EXPECT_EQ(layer(counted, "layer1.0.downsample.0").activations, projected);
  EXPECT_EQ(layer(counted, "layer1.0.downsample.1").activations, 0);
  EXPECT_EQ(layer(counted, "layer1.0.add").activations, projected);
  EXPECT_EQ(layer(counted, "layer2.1.add").activations, 2 * plain);
  // With a ReLU after it, as in ResNets, it is made in place.
  const std::string head = "onetap-net 1\nx = input 4x8x8\nc = conv x out=4\ns = add c x\n";
  const auto sum = [&](const std::string& rest) {
    return layer(count_network(parse_network(head + rest), CountRules::kPaper), "s").activations;
  };
  EXPECT_EQ(sum("r = relu s\ng = gap r\n"), 0);
  EXPECT_EQ(sum("g = gap s\n"), 2 * 4 * 64);
  EXPECT_EQ(sum("r = relu s\nt = add r s\ng = gap t\n"), 2 * 4 * 64);  // somebody else reads it, too
}

// A shift reads its input at other places: its result lies beside it.
TEST(Memory, ShiftsDoNotWorkInPlace) {
  for (const char* shift : {"shift", "activeshift"}) {
    const Graph graph = parse_network("onetap-net 1\nx = input 9x8x8\ns = " + std::string(shift) + " x\ng = gap s\n");
    EXPECT_EQ(peak_activations(graph), 2 * 9 * 64) << shift;
  }
}

}  // namespace
}  // namespace onetap
