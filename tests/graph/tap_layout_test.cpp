#include "onetap/graph/tap_layout.h"

#include "onetap/graph/sal.h"

#include <gtest/gtest.h>

#include <vector>

namespace onetap {
namespace {

TapLayout layout(int64_t outputs, int64_t inputs, int64_t share_outputs, int64_t share_inputs) {
  TapLayout made;
  made.outputs = outputs;
  made.inputs = inputs;
  made.positions = 9;
  made.share_outputs = share_outputs;
  made.share_inputs = share_inputs;
  return made;
}

TEST(TapLayout, WithoutSharingEverySliceHasItsOwnSet) {
  const TapLayout each = layout(3, 2, 1, 1);
  EXPECT_EQ(each.sets(), 6);
  for (int64_t d = 0; d < 3; ++d) {
    for (int64_t c = 0; c < 2; ++c) EXPECT_EQ(each.set_of(d, c), d * 2 + c);
  }
}

TEST(TapLayout, BlocksAtTheEndsAreSmaller) {
  // 5 outputs by 2, 7 inputs by 4: 3 x 2 blocks.
  const TapLayout blocks = layout(5, 7, 2, 4);
  EXPECT_EQ(blocks.output_blocks(), 3);
  EXPECT_EQ(blocks.input_blocks(), 2);
  EXPECT_EQ(blocks.sets(), 6);
  EXPECT_EQ(blocks.set_of(1, 3), 0);
  EXPECT_EQ(blocks.set_of(2, 3), 2);
  EXPECT_EQ(blocks.set_of(4, 6), 5);
  EXPECT_EQ(blocks.slices_of(0), 8);
  EXPECT_EQ(blocks.slices_of(1), 6);
  EXPECT_EQ(blocks.slices_of(5), 3);
}

TEST(TapLayout, SlicesOfAllSetsAreAllSlices) {
  for (const auto& [share_outputs, share_inputs] : {std::pair{1, 1}, {4, 1}, {4, 4}, {13, 1}, {3, 5}}) {
    const TapLayout blocks = layout(13, 11, share_outputs, share_inputs);
    std::vector<int64_t> counted(static_cast<size_t>(blocks.sets()), 0);
    for (int64_t d = 0; d < 13; ++d) {
      for (int64_t c = 0; c < 11; ++c) ++counted.at(static_cast<size_t>(blocks.set_of(d, c)));
    }
    for (int64_t set = 0; set < blocks.sets(); ++set) {
      EXPECT_EQ(blocks.slices_of(set), counted[static_cast<size_t>(set)]);
    }
  }
}

// ceil(log2 S), as the paper counts positions: 4 bits for 3x3, 5 for 5x5. "None" is a tenth code of 3x3.
TEST(TapLayout, BitsOfACode) {
  TapLayout one = layout(1, 1, 1, 1);
  EXPECT_EQ(one.bits(), 4);
  one.may_be_empty = true;
  EXPECT_EQ(one.bits(), 4);
  EXPECT_EQ(one.none(), 9);
  one.positions = 25;
  EXPECT_EQ(one.bits(), 5);
  one.positions = 16;
  EXPECT_EQ(one.bits(), 5);
  one.may_be_empty = false;
  EXPECT_EQ(one.bits(), 4);
  one.positions = 2;
  EXPECT_EQ(one.bits(), 1);
  one.positions = 8;
  EXPECT_EQ(one.bits(), 3);
  one.positions = 49;
  EXPECT_EQ(one.bits(), 6);
}

TEST(TapLayout, OfANodeIsPerGroupOfChannels) {
  Graph graph("grouped");
  Node input;
  input.name = "x";
  input.op = Op::kInput;
  input.shape = {8, 6, 6};
  graph.add(input);
  Node conv;
  conv.name = "conv";
  conv.op = Op::kConv;
  conv.inputs = {"x"};
  conv.out = 12;
  conv.kernel = {3, 3};
  conv.padding = {1, 1};
  conv.groups = 4;
  graph.add(conv);
  graph.set_method("conv", sal_method(2, 5));
  const TapLayout of_node = tap_layout(graph, graph.node("conv"));
  EXPECT_EQ(of_node.inputs, 2);
  EXPECT_EQ(of_node.output_blocks(), 3);
  EXPECT_EQ(of_node.codes(), 3 * 2 * 2);
  EXPECT_EQ(of_node.first_code(11, 1), ((2 * 2) + 1) * 2);
}

}  // namespace
}  // namespace onetap
