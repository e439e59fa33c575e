#include "onetap/tap/drop.h"

#include "onetap/base/safetensors.h"
#include "onetap/count/count.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/graph/text.h"
#include "onetap/tap/codes.h"
#include "onetap/tap/tap_file.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

using testing::expect_error;
using Codes = std::vector<uint16_t>;

// One tap convolution of 2 inputs and 3 outputs on 4x4 pixels; `keys` say how it shares.
TapNet net_of(const std::string& keys, const std::vector<float>& weight, const Codes& codes) {
  TapNet net =
      random_tap_net(parse_network("onetap-net 1\nx = input 2x4x4\nc = tapconv x out=3 kernel=3 pad=1 bias=1 " + keys +
                                   "\ng = gap c\nf = linear g out=2\n"),
                     5);
  LayerTensors& tensors = net.layers.at("c");
  tensors.weight = Tensor::of<float>(weight, {3, 2, static_cast<int64_t>(weight.size()) / 6});
  tensors.positions = codes;
  check_tap_net(net);
  return net;
}

std::vector<float> weight_of(const TapNet& net) {
  const Tensor& weight = net.layers.at("c").weight;
  return {weight.data<float>(), weight.data<float>() + weight.count()};
}

TEST(Drop, ByDefaultOnlyWhatIsExactlyZero) {
  TapNet net = net_of("share=1", {3, 0, 1e-30f, 4, -0.0f, 0}, {0, 1, 2, 3, 4, 5});
  const DropResult result = drop_weights(net, {});
  EXPECT_EQ(net.layers.at("c").positions, (Codes{0, 9, 2, 3, 9, 9}));
  EXPECT_EQ(weight_of(net), (std::vector<float>{3, 0, 1e-30f, 4, 0, 0}));
  EXPECT_EQ(result.weights, 6);
  EXPECT_EQ(result.dropped, 3);
  EXPECT_EQ(result.faint, 1);  // 1e-30 beside 4
  ASSERT_EQ(result.layers.size(), 1u);
  EXPECT_EQ(result.layers[0].name, "c");
  EXPECT_EQ(result.layers[0].dropped, 3);
  EXPECT_NO_THROW(check_tap_net(net));
  // Again there is nothing left to drop.
  const Graph before = net.graph;
  EXPECT_EQ(drop_weights(net, {}).dropped, 3);
  EXPECT_TRUE(net.graph == before);
}

// Squares 9, 16, 144, 576, 900 and 1600, the smallest first: those that are left after each are 3245, 3236, 3220, 3076,
// 2500 and 1600. Scores: .0527, .0703, .2115, .4327, .6 and 1.
TEST(Drop, ScoresAreRelativeToWhatIsNotSmallerInTheLayer) {
  const std::vector<float> weight = {3, -4, 30, 40, 24, 12};
  const Codes codes = {0, 1, 2, 3, 4, 5};
  TapNet net = net_of("share=1", weight, codes);
  drop_weights(net, {0.05, {}});
  EXPECT_EQ(net.layers.at("c").positions, codes);
  drop_weights(net, {0.071, {}});
  EXPECT_EQ(net.layers.at("c").positions, (Codes{9, 9, 2, 3, 4, 5}));
  drop_weights(net, {0.211, {}});  // scores are what they were
  EXPECT_EQ(net.layers.at("c").positions, (Codes{9, 9, 2, 3, 4, 5}));
  drop_weights(net, {0.433, {}});
  EXPECT_EQ(net.layers.at("c").positions, (Codes{9, 9, 2, 3, 9, 9}));
  drop_weights(net, {0.601, {}});
  EXPECT_EQ(net.layers.at("c").positions, (Codes{9, 9, 9, 3, 9, 9}));
  EXPECT_EQ(tap_layout(net.graph, net.graph.node("c")).dropped, 5);
  drop_weights(net, {1, {}});  // the largest of a layer stays
  EXPECT_EQ(tap_layout(net.graph, net.graph.node("c")).dropped, 5);
}

// Blocks of 2 outputs x 1 input, then output 2 alone: mean squares 12.5 and 12.5 of two weights each, 49 and 576. What
// is left: 675, 650, 625, 576; scores .1361, .1387, .28 and 1.
TEST(Drop, SharedPositionsGoTogether) {
  TapNet net = net_of("share=2", {3, 4, 4, 3, 7, 24}, {0, 1, 2, 3});
  drop_weights(net, {0.137, {}});
  EXPECT_EQ(std::count(net.layers.at("c").positions.begin(), net.layers.at("c").positions.end(), 9), 1);
  EXPECT_EQ(tap_layout(net.graph, net.graph.node("c")).dropped, 2);
  drop_weights(net, {0.27, {}});
  EXPECT_EQ(net.layers.at("c").positions, (Codes{9, 9, 2, 3}));
  EXPECT_EQ(weight_of(net), (std::vector<float>{0, 0, 0, 0, 7, 24}));
  EXPECT_EQ(drop_weights(net, {0.29, {}}).dropped, 5);
  // One weight of a block that is not zero keeps all of it.
  net = net_of("share=2", {0, 4, 1, 3, 7, 24}, {0, 1, 2, 3});
  EXPECT_EQ(drop_weights(net, {}).dropped, 0);
}

// Two taps per slice: entries go one by one, and what stays moves to the front.
TEST(Drop, OneOfTwoTaps) {
  TapNet net = net_of("taps=2", {0, 2, 3, 0, 0, 0, 1, 1, 1, 1, 1, 0}, {0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 7, 8});
  const DropResult result = drop_weights(net, {});
  EXPECT_EQ(net.layers.at("c").positions, (Codes{1, 9, 2, 9, 9, 9, 6, 7, 0, 8, 7, 9}));
  EXPECT_EQ(weight_of(net), (std::vector<float>{2, 0, 3, 0, 0, 0, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(result.dropped, 5);
  EXPECT_NO_THROW(check_tap_net(net));
}

TEST(Drop, ADensityIsReachedOverTheNetwork) {
  Graph graph = parse_network(
      "onetap-net 1\nx = input 4x8x8\na = tapconv x out=10 kernel=3 pad=1 share=1\n"
      "b = tapconv a out=10 kernel=5 pad=2 taps=2 share=1\ng = gap b\nf = linear g out=2\n");
  for (const double density : {1.0, 0.75, 0.6, 0.5, 0.1}) {
    TapNet net = random_tap_net(graph, 1);
    const DropResult result = drop_weights(net, {0, density});
    EXPECT_EQ(result.weights, 10 * 4 + 10 * 10 * 2);
    EXPECT_EQ(result.weights - result.dropped, std::llround(density * 240));
    EXPECT_NO_THROW(check_tap_net(net));
    // The threshold that it says does the same.
    TapNet same = random_tap_net(graph, 1);
    drop_weights(same, {result.below, {}});
    EXPECT_TRUE(same.graph == net.graph);
    EXPECT_TRUE(same.layers == net.layers);
  }
  // What is zero goes, even where more might stay.
  TapNet net = net_of("share=1", {3, 0, 0, 4, 1, 0}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(drop_weights(net, {0, 0.9}).dropped, 3);
}

TEST(Drop, RefusesWhatIsNoShare) {
  TapNet net = net_of("share=1", {1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5});
  for (const double bad : {0.0, -0.5, 1.5, std::nan("")}) {
    expect_error(ErrorKind::kUsage, "expected a density above 0 and at most 1", [&] { drop_weights(net, {0, bad}); });
  }
  for (const double bad : {-1.0, std::nan("")}) {
    expect_error(ErrorKind::kUsage, "expected a threshold of at least 0", [&] { drop_weights(net, {bad, {}}); });
  }
  net.layers.at("c").weight = Tensor::of<int8_t>({1, 2, 3, 4, 5, 6}, {3, 2, 1});
  expect_error(ErrorKind::kData, "got I8 (c)", [&] { drop_weights(net, {}); });
}

TEST(Drop, DenseWeightsAreWhatTheyWereWithZeros) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    TapNet net = testing::random_net(seed);
    const TapNet before = net;
    drop_weights(net, {0, 0.5});
    for (const Node& node : net.graph.nodes()) {
      if (node.op != Op::kTapConv) continue;
      const std::vector<float> was = dense_weight(before, before.graph.node(node.name)), is = dense_weight(net, node);
      int64_t gone = 0;
      for (size_t i = 0; i < is.size(); ++i) {
        EXPECT_TRUE(is[i] == was[i] || is[i] == 0);
        gone += was[i] != 0 && is[i] == 0 ? 1 : 0;
      }
      EXPECT_EQ(gone, tap_layout(net.graph, node).dropped);
    }
  }
}

// 6 weights of 32 bits and 6 positions of 4 bits are 27 bytes; without 3 weights 15. 16 pixels each.
TEST(Drop, FilesAndCountsFollow) {
  const TapNet whole = net_of("share=1", {3, 0, 0, 4, 5, 0}, {0, 1, 2, 3, 4, 5});
  TapNet net = whole;
  drop_weights(net, {});
  const auto tensor_bytes = [](const TapNet& of, const std::string& name) {
    return SafetensorsFile::parse(tap_bytes(of), "test").find(name)->bytes();
  };
  EXPECT_EQ(tensor_bytes(whole, "c.weight"), 6u * 4);
  EXPECT_EQ(tensor_bytes(net, "c.weight"), 3u * 4);
  EXPECT_EQ(tensor_bytes(net, "c.positions"), 3u);
  const LayerCount before = count_network(whole.graph, CountRules::kPaper).layers[1];
  const LayerCount after = count_network(net.graph, CountRules::kPaper).layers[1];
  EXPECT_EQ(before.params, 6 + 6 * 4 / 32.0 + 3);  // weights, positions, biases
  EXPECT_EQ(after.params, 3 + 6 * 4 / 32.0 + 3);
  EXPECT_EQ(before.macs, 6 * 16);
  EXPECT_EQ(after.macs, 3 * 16);
  EXPECT_EQ(before.empty, 0);
  EXPECT_EQ(after.empty, 0.5);
  EXPECT_EQ(count_network(net.graph, CountRules::kPlain).empty, 0.5);
  EXPECT_EQ(tap_length(net.graph, WeightType::kF32), tap_bytes(net).size());
  EXPECT_EQ(SafetensorsFile::parse(tap_bytes(net), "test").metadata().at("version"), "3");
  EXPECT_EQ(SafetensorsFile::parse(tap_bytes(whole), "test").metadata().at("version"), "1");
}

TEST(Drop, FilesRoundTrip) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    TapNet net = testing::random_net(seed);
    drop_weights(net, {0, 0.1 + 0.1 * static_cast<double>(seed % 9)});
    const TapNet read = parse_tap(tap_bytes(net), "test");
    EXPECT_TRUE(read.graph == net.graph);
    EXPECT_TRUE(read.layers == net.layers);
    EXPECT_TRUE(parse_network(network_text(net.graph)) == net.graph);
    EXPECT_EQ(tap_length(net.graph, WeightType::kF32), tap_bytes(net).size());
  }
  // A layer that keeps nothing, in both types of weights.
  for (const WeightType type : {WeightType::kF32, WeightType::kF16}) {
    TapNet net = net_of("share=1", std::vector<float>(6, 0.0f), {0, 1, 2, 3, 4, 5});
    net.weight_type = type;
    for (auto& [name, tensors] : net.layers) tensors.weight = Tensor(DType::kF32, tensors.weight.shape());
    drop_weights(net, {});
    const TapNet read = parse_tap(tap_bytes(net), "test");
    EXPECT_EQ(read.weight_type, type);
    EXPECT_TRUE(read.layers == net.layers);
  }
}

TEST(Drop, NetsAndFilesThatLieAreRefused) {
  TapNet good = net_of("share=1", {3, 0, 0, 4, 5, 0}, {0, 1, 2, 3, 4, 5});
  drop_weights(good, {});
  TapNet net = good;
  net.layers.at("c").positions = {0, 9, 2, 3, 4, 9};
  expect_error(ErrorKind::kData, "expected 3 weights without a position, got 2 (c)", [&] { check_tap_net(net); });
  net = good;
  net.layers.at("c").weight.data<float>()[1] = 1;
  expect_error(ErrorKind::kData, "weights of 0 where positions are empty (c)", [&] { check_tap_net(net); });

  const SafetensorsFile file = SafetensorsFile::parse(tap_bytes(good), "good");
  const auto refused = [&](const char* part,
                           const std::function<void(nlohmann::json&, std::vector<TensorView>&)>& lie) {
    Metadata metadata = file.metadata();
    std::vector<TensorView> tensors = file.tensors();
    auto graph = nlohmann::json::parse(metadata["graph"]);
    lie(graph["nodes"][1], tensors);
    metadata["graph"] = graph.dump();
    expect_error(ErrorKind::kData, part, [&] { parse_tap(safetensors_bytes(tensors, metadata), "bad.tap"); });
  };
  refused("expected F32 [4] for 'c.weight', got F32 [3]", [](auto& node, auto&) { node["dropped"] = 2; });
  refused("for 'c.weight'", [](auto& node, auto&) { node.erase("dropped"); });
  refused("expected dropped of at most 6 (its weights), got 7", [](auto& node, auto&) { node["dropped"] = 7; });
  const std::string none_of_them("\x10\x32\x54", 3);  // 0, 1, 2, 3, 4, 5
  refused("expected 3 weights without a position, got 0 (c, bad.tap)", [&](auto&, auto& tensors) {
    for (TensorView& view : tensors) {
      if (view.name == "c.positions") view.data = none_of_them.data();
    }
  });
}

// One code stands for a block of 2^16 x 2^16 slices, of which the file has nothing.
TEST(Drop, AFewBytesDoNotBecomeGigabytes) {
  const std::string graph = R"({"name": "n", "nodes": [
      {"name": "x", "op": "input", "shape": [8192, 1, 1]},
      {"name": "c", "op": "tapconv", "inputs": ["x"], "out": 8192, "kernel": [3, 3], "pad": [1, 1], "taps": 1,
       "share": "8192x8192", "dropped": 67108864}], "output": "c"})";
  const std::string code("\x09", 1);
  const std::vector<TensorView> tensors = {{"c.weight", DType::kF32, {0}, code.data()},
                                           {"c.positions", DType::kU8, {1}, code.data()}};
  const Metadata metadata = {
      {"format", "onetap-tap"}, {"version", "3"}, {"graph", graph}, {"mean", "[0,0,0]"}, {"sd", "[1,1,1]"}};
  expect_error(ErrorKind::kData, "expected at most 33554432 dropped weights in a file",
               [&] { parse_tap(safetensors_bytes(tensors, metadata), "bomb.tap"); });
}

}  // namespace
}  // namespace onetap
