#include "onetap/graph/channels.h"

#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

namespace onetap {
namespace {

using testing::expect_error;
using Names = std::vector<std::string>;
using Channels = std::vector<int64_t>;

Graph net(const std::string& lines) {
  return parse_network("onetap-net 1\nnetwork test\n" + lines);
}

Graph resnet(const std::string& arch, int64_t width, char shortcut) {
  NetSpec spec;
  spec.arch = arch;
  spec.width = width;
  spec.shortcut = shortcut;
  return build_network(spec);
}

// The outputs of a block's last convolution meet the shortcut in an add; those before it meet nobody.
TEST(CuttableConvs, AreTheInnerOnesOfResidualBlocks) {
  const Names inner = {"layer1.0.conv1", "layer2.0.conv1", "layer3.0.conv1"};
  EXPECT_EQ(cuttable_convs(resnet("resnet8", 4, 'A')), inner);
  EXPECT_EQ(cuttable_convs(resnet("resnet8", 4, 'B')), inner);
  // Two of three in every bottleneck, and the first one of all: its only readers are a block and a projection.
  const Names bottlenecks = cuttable_convs(resnet("resnet50-cifar", 4, 'B'));
  EXPECT_EQ(bottlenecks.size(), 1u + 2 * (3 + 4 + 6 + 3));
  EXPECT_EQ(bottlenecks[0], "conv1");
  EXPECT_EQ(bottlenecks[1], "layer1.0.conv1");
  EXPECT_EQ(bottlenecks[2], "layer1.0.conv2");
  EXPECT_EQ(bottlenecks.back(), "layer4.2.conv2");
}

TEST(CuttableConvs, FollowConcatenationsFlatteningAndDepthwiseConvolutions) {
  EXPECT_EQ(cuttable_convs(net("x = input 3x8x8\n"
                               "squeeze = conv x out=4\n"
                               "one = conv squeeze out=6\n"
                               "three = conv squeeze out=6 kernel=3 pad=1\n"
                               "both = concat one three\n"
                               "act = relu both\n"
                               "last = conv act out=10\n"
                               "pool = gap last\n")),
            (Names{"squeeze", "one", "three"}));
  EXPECT_EQ(cuttable_convs(net("x = input 3x8x8\n"
                               "wide = conv x out=6\n"
                               "deep = conv wide out=6 kernel=3 pad=1 groups=6\n"
                               "pool = maxpool deep kernel=2 stride=2\n"
                               "flat = flatten pool\n"
                               "fc = linear flat out=10\n")),
            (Names{"wide"}));
}

TEST(CuttableConvs, LeaveOutWhatMeetsOthersOrGoesByItsPlace) {
  // A grouped convolution reads a, a shift with the usual table reads b, c is the result.
  EXPECT_EQ(cuttable_convs(net("x = input 3x8x8\n"
                               "a = conv x out=4\n"
                               "grouped = conv a out=4 groups=2\n"
                               "b = conv grouped out=9\n"
                               "move = shift b kernel=3\n"
                               "c = conv move out=4\n")),
            Names{});
  EXPECT_EQ(cuttable_convs(net("x = input 3x8x8\n"
                               "b = conv x out=9\n"
                               "move = shift b kernel=3 counts=1,1,1,1,1,1,1,1,1\n"
                               "c = conv move out=4\n")),
            Names{"b"});
}

TEST(CutChannels, ThePlanReachesNormsReadersAndWeights) {
  const Graph graph = resnet("resnet8", 4, 'A');
  const ChannelCut cut = cut_channels(graph, {{"layer2.0.conv1", {1, 2, 7}}});
  EXPECT_EQ(cut.graph.node("layer2.0.conv1").out, 3);
  EXPECT_EQ(cut.graph.node("layer2.0.bn1").shape, (Shape{3, 16, 16}));
  EXPECT_EQ(cut.graph.node("layer2.0.conv2").shape, (Shape{8, 16, 16}));
  EXPECT_EQ(cut.kept.at("layer2.0.conv1").inputs, (Channels{0, 1, 2, 3}));
  EXPECT_EQ(cut.kept.at("layer2.0.conv1").outputs, (Channels{1, 2, 7}));
  EXPECT_EQ(cut.kept.at("layer2.0.bn1").outputs, (Channels{1, 2, 7}));
  EXPECT_EQ(cut.kept.at("layer2.0.conv2").inputs, (Channels{1, 2, 7}));
  EXPECT_EQ(parse_network(network_text(cut.graph)), cut.graph);
  EXPECT_EQ(cut_channels(graph, {}).graph, graph);
}

TEST(CutChannels, OffsetsOfConcatenationsPlanesOfFlattening) {
  const ChannelCut cut = cut_channels(net("x = input 3x2x2\n"
                                          "a = conv x out=3\n"
                                          "b = conv x out=2\n"
                                          "both = concat a b\n"
                                          "flat = flatten both\n"
                                          "fc = linear flat out=10\n"),
                                      {{"a", {2}}, {"b", {1}}});
  EXPECT_EQ(cut.kept.at("both").outputs, (Channels{2, 4}));
  EXPECT_EQ(cut.kept.at("fc").inputs, (Channels{8, 9, 10, 11, 16, 17, 18, 19}));
  EXPECT_EQ(cut.graph.node("flat").shape, (Shape{8}));
  EXPECT_EQ(cut.kept.at("fc").outputs.size(), 10u);
}

TEST(CutChannels, GroupsStayAlikeOrGo) {
  // Two outputs for each channel of a depthwise convolution.
  const ChannelCut deep = cut_channels(net("x = input 3x8x8\n"
                                           "wide = conv x out=4\n"
                                           "deep = conv wide out=8 groups=4\n"
                                           "last = conv deep out=5\n"),
                                       {{"wide", {0, 3}}});
  EXPECT_EQ(deep.kept.at("deep").outputs, (Channels{0, 1, 6, 7}));
  EXPECT_EQ(deep.graph.node("deep").groups, 2);
  EXPECT_EQ(deep.graph.node("deep").out, 4);

  const Graph grouped = net("x = input 3x8x8\na = conv x out=6\nb = conv a out=4 groups=2\nlast = conv b out=5\n");
  const ChannelCut balanced = cut_channels(grouped, {{"a", {0, 1, 4, 5}}, {"b", {1, 2}}});
  EXPECT_EQ(balanced.graph.node("b").groups, 2);
  EXPECT_EQ(balanced.graph.node("b").out, 2);
  EXPECT_EQ(cut_channels(grouped, {{"a", {3, 4, 5}}, {"b", {2, 3}}}).graph.node("b").groups, 1);
  expect_error(ErrorKind::kUsage, "b: expected each of its 2 groups", [&] {
    cut_channels(grouped, {{"a", {0, 1, 4}}});
  });
  expect_error(ErrorKind::kUsage, "b: expected each of its 2 groups", [&] {
    cut_channels(grouped, {{"a", {3, 4, 5}}, {"b", {0, 1}}});
  });
}

// All that a stage adds up, cut alike. The zeros of the next shortcut stay: 4 in front of and behind 6 of 8.
TEST(CutChannels, AStageCutAlike) {
  const Graph graph = resnet("resnet8", 8, 'A');
  const Channels six = {0, 1, 2, 4, 5, 7};
  const Channels fourteen = {0, 1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15};
  const Channels last = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                         16, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  const ChannelCut cut = cut_channels(
      graph, {{"conv1", six}, {"layer1.0.conv2", six}, {"layer2.0.conv2", fourteen}, {"layer3.0.conv2", last}});
  EXPECT_EQ(cut.kept.at("layer2.0.downsample").outputs, fourteen);
  EXPECT_EQ(cut.kept.at("layer3.0.downsample").outputs, last);
  EXPECT_EQ(cut.graph.node("layer3.0.downsample").out, 30);
  EXPECT_EQ(cut.kept.at("fc").inputs, last);
  expect_error(ErrorKind::kUsage, "layer2.0.add: expected the same channels to stay", [&] {
    cut_channels(graph, {{"conv1", six}, {"layer1.0.conv2", six}});
  });
  expect_error(ErrorKind::kUsage, "got 8 of 8 of 'layer1.0.bn2' and 6 of 8 of 'relu'", [&] {
    cut_channels(graph, {{"conv1", six}});
  });
}

TEST(CutChannels, ShiftsMoveEveryChannelAsBefore) {
  const Graph uneven =
      net("x = input 3x8x8\na = conv x out=6\nmove = shift a kernel=3 counts=2,0,0,0,3,0,0,0,1\n"
          "b = conv move out=4\n");
  const ChannelCut cut = cut_channels(uneven, {{"a", {1, 2, 5}}});
  EXPECT_EQ(cut.graph.node("move").counts, (Channels{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  const Graph even = net("x = input 3x8x8\na = conv x out=18\nmove = shift a kernel=3\nb = conv move out=4\n");
  expect_error(ErrorKind::kUsage, "move: a channel's place decides", [&] { cut_channels(even, {{"a", {0, 2}}}); });
  Channels round(9);  // a whole round moves as it did
  for (int64_t c = 0; c < 9; ++c) round[static_cast<size_t>(c)] = c;
  EXPECT_EQ(cut_channels(even, {{"a", round}}).graph.node("move").shape[0], 9);
}

TEST(CutChannels, RefusesPlansThatDoNotFit) {
  const Graph graph = resnet("resnet8", 4, 'B');
  const auto refused = [&](const std::string& part, const ChannelPlan& plan) {
    expect_error(ErrorKind::kUsage, part, [&] { cut_channels(graph, plan); });
  };
  refused("expected a conv of resnet8 to cut channels of, got 'layer9'", {{"layer9", {0}}});
  refused("got 'fc'", {{"fc", {0}}});
  refused("layer1.0.conv1: expected one or more of its channels 0..3", {{"layer1.0.conv1", {}}});
  refused("0..3", {{"layer1.0.conv1", {1, 1}}});
  refused("0..3", {{"layer1.0.conv1", {2, 1}}});
  refused("0..3", {{"layer1.0.conv1", {4}}});
  refused("0..3", {{"layer1.0.conv1", {-1}}});
  expect_error(ErrorKind::kUsage, "'last' to stay, which is the result of test, got 1 of 2", [&] {
    cut_channels(net("x = input 3x8x8\nlast = conv x out=2\n"), {{"last", {0}}});
  });
  expect_error(ErrorKind::kUsage, "deep: a depthwise convolution has the channels of its input", [&] {
    cut_channels(net("x = input 3x8x8\ndeep = conv x out=3 groups=3\nlast = conv deep out=2\n"), {{"deep", {0}}});
  });
  const Graph sal = testing::small_resnet(sal_method());
  expect_error(ErrorKind::kUsage, "layer1.0.conv1: expected a dense layer where channels are cut, got method=sal", [&] {
    cut_channels(sal, {{"layer1.0.conv1", {0}}});
  });
}

}  // namespace
}  // namespace onetap
