#include "onetap/graph/shift_table.h"

#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

#include <numeric>

namespace onetap {
namespace {

using testing::expect_error;

// All taps of the layer at one position.
TapShares all_at(const std::string& layer, size_t position, Extent2 kernel = {3, 3}) {
  TapShares taps{layer, kernel, std::vector<double>(static_cast<size_t>(kernel.area()), 0.0)};
  taps.shares[position] = 1;
  return taps;
}

TEST(ShiftTable, TakesTheLayerOfTheSameName) {
  Graph graph = testing::small_resnet(Method("shift"));
  std::vector<TapShares> learned;
  for (const char* layer :
       {"layer1.0.conv1", "layer1.0.conv2", "layer2.0.conv1", "layer2.0.conv2", "layer3.0.conv1", "layer3.0.conv2"}) {
    learned.push_back(all_at(layer, learned.size()));
  }
  std::swap(learned[0], learned[5]);  // the order says nothing
  set_shift_table(graph, learned);
  EXPECT_EQ(graph.node("layer1.0.shift1").counts, (std::vector<int64_t>{4, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(graph.node("layer1.0.shift2").counts, (std::vector<int64_t>{0, 4, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(graph.node("layer3.0.shift2").counts, (std::vector<int64_t>{0, 0, 0, 0, 0, 16, 0, 0, 0}));
  EXPECT_TRUE(parse_network(network_text(graph)) == graph);  // a run's network.txt holds it
}

// Three shifts and six learned layers: the middles of the thirds are layers 1, 3 and 5.
TEST(ShiftTable, ElseTheLayerAtTheSameDepth) {
  Graph graph = parse_network(
      "onetap-net 1\nx = input 3x8x8\ns1 = shift x kernel=3\nt = shift s1 kernel=5\ns2 = shift t kernel=3\n"
      "s3 = shift s2 kernel=3\n");
  std::vector<TapShares> learned;
  for (size_t i = 0; i < 6; ++i) learned.push_back(all_at("conv" + std::to_string(10 + i), i));
  learned.insert(learned.begin() + 2, all_at("five", 24, {5, 5}));
  set_shift_table(graph, learned);
  EXPECT_EQ(graph.node("s1").counts[1], 3);
  EXPECT_EQ(graph.node("s2").counts[3], 3);
  EXPECT_EQ(graph.node("s3").counts[5], 3);
  EXPECT_EQ(graph.node("t").counts[24], 3);
}

TEST(ShiftTable, DividesChannelsByProportions) {
  Graph graph = parse_network("onetap-net 1\nx = input 10x8x8\ns = shift x kernel=3\n");
  // Tenths: 5, 2.5, 2.5 and nothing elsewhere; the first of two equal remainders gets the channel.
  set_shift_table(graph, {{"conv1", {3, 3}, {20, 0, 0, 0, 10, 0, 0, 0, 10}}});
  EXPECT_EQ(graph.node("s").counts, (std::vector<int64_t>{5, 0, 0, 0, 3, 0, 0, 0, 2}));
}

TEST(ShiftTable, SaysWhatIsMissing) {
  Graph dense = testing::small_resnet(Method{});
  expect_error(ErrorKind::kUsage, "has no shift to give a table to", [&] { set_shift_table(dense, {all_at("c", 0)}); });
  Graph five = parse_network("onetap-net 1\nx = input 3x8x8\ns = shift x kernel=5\n");
  expect_error(ErrorKind::kData, "s: expected learned taps of 5x5 kernels, got none",
               [&] { set_shift_table(five, {all_at("c", 0)}); });
}

}  // namespace
}  // namespace onetap
