#include "onetap/tap/sparse_to_taps.h"

#include "onetap/graph/tap_layout.h"
#include "onetap/graph/text.h"
#include "onetap/tap/tap_file.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

#include <algorithm>

namespace onetap {
namespace {

using testing::expect_error;
using Codes = std::vector<uint16_t>;

// One convolution of so many inputs and outputs, 3x3, between an image and a classifier.
TapNet conv_net(int64_t inputs, int64_t outputs, const std::vector<float>& weight, const std::string& keys = "") {
  const std::string text = "onetap-net 1\nx = input " + std::to_string(inputs) +
                           "x5x5\nc = conv x out=" + std::to_string(outputs) + " kernel=3 pad=1 bias=1 " + keys +
                           "\ng = gap c\nf = linear g out=2\n";
  TapNet net = random_tap_net(parse_network(text), 5);
  Tensor& tensor = net.layers.at("c").weight;
  tensor = Tensor::of<float>(weight, tensor.shape());
  return net;
}

// A kernel slice of nine zeros but for these.
std::vector<float> kernel_slice(std::initializer_list<std::pair<size_t, float>> values) {
  std::vector<float> weights(9, 0.0f);
  for (const auto& [position, value] : values) weights[position] = value;
  return weights;
}

std::vector<float> all_slices(std::initializer_list<std::vector<float>> slices) {
  std::vector<float> all;
  for (const auto& one : slices) all.insert(all.end(), one.begin(), one.end());
  return all;
}

std::vector<float> weights_left(const TapNet& net) {
  const Tensor& weight = net.layers.at("c").weight;
  return {weight.data<float>(), weight.data<float>() + weight.count()};
}

// 2 outputs of 2 inputs, each slice at a position of its own: 4 weights and 4 codes of 4 bits.
TEST(SparseToTaps, OnePositionPerSlice) {
  TapNet net = conv_net(
      2, 2,
      all_slices({kernel_slice({{0, 1}}), kernel_slice({{8, 2}}), kernel_slice({{4, 3}}), kernel_slice({{5, 4}})}));
  const auto converted = sparse_to_taps(net);
  ASSERT_EQ(converted.size(), 1u);
  EXPECT_EQ(converted[0].name, "c");
  EXPECT_EQ(net.graph.node("c").op, Op::kTapConv);
  EXPECT_EQ(net.layers.at("c").positions, (Codes{0, 8, 4, 5}));
  EXPECT_EQ(weights_left(net), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(tap_layout(net.graph, net.graph.node("c")).dropped, 0);
  EXPECT_NO_THROW(check_tap_net(net));
}

// Outputs 0 and 1 have positions 3 (input 0) and 7 (input 1) in common, output 2 has positions 1 and 2.
TEST(SparseToTaps, BlocksThatAgreeShareTheirPositions) {
  TapNet net = conv_net(2, 3,
                        all_slices({kernel_slice({{3, 1}}), kernel_slice({{7, 2}}), kernel_slice({{3, 3}}),
                                    kernel_slice({{7, 4}}), kernel_slice({{1, 5}}), kernel_slice({{2, 6}})}));
  ASSERT_EQ(sparse_to_taps(net).size(), 1u);
  const TapLayout layout = tap_layout(net.graph, net.graph.node("c"));
  EXPECT_EQ(layout.share_outputs, 2);
  EXPECT_EQ(layout.share_inputs, 1);
  EXPECT_EQ(net.layers.at("c").positions, (Codes{3, 7, 1, 2}));
  EXPECT_EQ(weights_left(net), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

// The second slice has one position fewer than the first, and the third none at all.
TEST(SparseToTaps, SmallerSetsHaveEmptyEntriesAtTheirEnd) {
  TapNet net = conv_net(3, 1, all_slices({kernel_slice({{2, 1}, {6, 2}}), kernel_slice({{8, 3}}), kernel_slice({})}));
  ASSERT_EQ(sparse_to_taps(net).size(), 1u);
  const TapLayout layout = tap_layout(net.graph, net.graph.node("c"));
  EXPECT_EQ(layout.taps, 2);
  EXPECT_EQ(layout.dropped, 3);
  EXPECT_EQ(net.layers.at("c").positions, (Codes{2, 6, 8, 9, 9, 9}));
  EXPECT_EQ(weights_left(net), (std::vector<float>{1, 2, 3, 0, 0, 0}));
  EXPECT_NO_THROW(check_tap_net(net));
}

TEST(SparseToTaps, AllZerosLeaveTheBias) {
  TapNet net = conv_net(2, 2, std::vector<float>(36, -0.0f));
  ASSERT_EQ(sparse_to_taps(net).size(), 1u);
  EXPECT_EQ(tap_layout(net.graph, net.graph.node("c")).kept_weights(), 0);
  EXPECT_NO_THROW(check_tap_net(net));
}

TEST(SparseToTaps, LayersThatAreNotSparseStayDense) {
  // Four of nine is below a half, five is not.
  const auto four = kernel_slice({{0, 1}, {1, 1}, {2, 1}, {3, 1}}),
             five = kernel_slice({{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}});
  TapNet sparse = conv_net(1, 1, four), dense = conv_net(1, 1, five);
  const Graph before = dense.graph;
  EXPECT_EQ(sparse_to_taps(sparse).size(), 1u);
  EXPECT_TRUE(sparse_to_taps(dense).empty());
  EXPECT_TRUE(dense.graph == before);
  EXPECT_EQ(sparse_to_taps(dense, {0.56}).size(), 1u);
}

TEST(SparseToTaps, OneBitWeightsAndPointwiseConvolutionsStay) {
  TapNet net = random_tap_net(parse_network("onetap-net 1\nx = input 3x8x8\na = conv x out=4 kernel=3 method=binary\n"
                                            "b = conv a out=4\ng = gap b\n"),
                              3);
  net.layers.at("b").weight = Tensor::of<float>(std::vector<float>(16, 0.0f), {4, 4, 1, 1});
  EXPECT_TRUE(sparse_to_taps(net).empty());
}

TEST(SparseToTaps, RefusesADensityOutOfRange) {
  TapNet net = conv_net(1, 1, kernel_slice({{0, 1}}));
  for (const double density : {0.0, -0.5, 1.5}) {
    expect_error(ErrorKind::kUsage, "expected a density above 0 and at most 1",
                 [&] { sparse_to_taps(net, {density}); });
  }
}

// Tap convolutions of every kind of blocks, spread out into dense ones with zeros, come back with a layout that takes
// no more of a file, and the same weights.
TEST(SparseToTaps, FindsTheLayoutOfTapConvolutions) {
  for (const std::string keys : {"taps=1 share=1", "taps=1 share=4x4", "taps=2 share=3x5", "taps=1 share=all",
                                 "taps=3 share=2", "taps=1 share=4 dropped=1", "taps=1 share=1 groups=2"}) {
    const Graph graph = parse_network("onetap-net 1\nx = input 10x6x6\nc = tapconv x out=24 kernel=3 pad=1 bias=1 " +
                                      keys + "\ng = gap c\nf = linear g out=3\n");
    const TapNet taps = random_tap_net(graph, 11);
    const Node& node = taps.graph.node("c");
    TapNet net = random_tap_net(
        parse_network("onetap-net 1\nx = input 10x6x6\nc = conv x out=24 kernel=3 pad=1 bias=1" +
                      std::string(node.groups == 2 ? " groups=2" : "") + "\ng = gap c\nf = linear g out=3\n"),
        11);
    Tensor& weight = net.layers.at("c").weight;
    const std::vector<float> dense = dense_weight(taps, node);
    weight = Tensor::of<float>(dense, weight.shape());
    net.layers.at("c").bias = taps.layers.at("c").bias;
    net.layers.at("f") = taps.layers.at("f");
    ASSERT_EQ(sparse_to_taps(net).size(), 1u) << keys;
    check_tap_net(net);
    EXPECT_EQ(dense_weight(net, net.graph.node("c")), dense) << keys;
    const TapLayout wanted = tap_layout(taps.graph, node), got = tap_layout(net.graph, net.graph.node("c"));
    EXPECT_LE(got.kept_weights() * 32 + got.codes() * got.bits(),
              wanted.kept_weights() * 32 + wanted.codes() * wanted.bits())
        << keys;
    if (wanted.dropped == 0 && node.groups == 1) {
      EXPECT_EQ(got.taps, wanted.taps) << keys;
      EXPECT_EQ(got.share_outputs, wanted.share_outputs) << keys;
      EXPECT_EQ(got.share_inputs, wanted.share_inputs) << keys;
      EXPECT_EQ(net.layers.at("c"), taps.layers.at("c")) << keys;
    }
  }
}

}  // namespace
}  // namespace onetap
