#include "onetap/tap/fold.h"

#include "onetap/graph/method.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "tests/graph/random_graph.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

int count_ops(const Graph& graph, Op op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op == op ? 1 : 0;
  return count;
}

TEST(Fold, ResNetHasNoBatchNormLeft) {
  NetSpec spec;
  spec.arch = "resnet20";
  Graph graph = build_network(spec);
  apply_method(graph, sal_method(1, 4), "");
  const FrozenForm form = frozen_form(graph);
  EXPECT_EQ(count_ops(form.graph, Op::kBatchNorm), 0);
  EXPECT_EQ(count_ops(form.graph, Op::kAffine), 0);
  EXPECT_EQ(count_ops(form.graph, Op::kTapConv), 18);
  EXPECT_EQ(count_ops(form.graph, Op::kConv), 3);  // stem and two projections
  EXPECT_EQ(form.folded.at("layer2.0.downsample.0"), "layer2.0.downsample.1");
  const Node& conv = form.graph.node("layer1.0.conv1");
  EXPECT_TRUE(conv.bias);
  EXPECT_EQ(tap_layout(form.graph, conv).share_outputs, 4);
  EXPECT_EQ(form.graph.node("layer1.0.relu1").inputs[0], "layer1.0.conv1");
}

TEST(Fold, ANormThatCannotGoIntoAConvolutionStays) {
  const FrozenForm form = frozen_form(parse_network(
      "onetap-net 1\nx = input 3x8x8\nbefore = bn x\nc = conv before out=4\nn = bn c\ns = add n c\nafter = bn s\n"));
  EXPECT_TRUE(form.folded.empty());  // c is read twice
  for (const char* name : {"before", "n", "after"}) EXPECT_EQ(form.graph.node(name).op, Op::kAffine);
}

TEST(Fold, TheOutputMayBeANorm) {
  const FrozenForm form = frozen_form(parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4\nn = bn c\n"));
  EXPECT_EQ(form.graph.output(), "c");
  // And a convolution that is the output keeps its own value.
  const FrozenForm kept =
      frozen_form(parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4\nn = bn c\noutput c\n"));
  EXPECT_EQ(kept.graph.output(), "c");
  EXPECT_FALSE(kept.graph.node("c").bias);
}

// Positions as the table of Wu et al. has them, the batch norm behind it folded too.
TEST(Fold, AShiftGoesIntoTheConvolutionBehindIt) {
  const FrozenForm form = frozen_form(
      parse_network("onetap-net 1\nx = input 3x8x8\na = conv x out=11\nn = bn a\ns = shift n kernel=3 dilation=2\n"
                    "c = conv s out=4 stride=2\nm = bn c\nr = relu m\n"));
  EXPECT_EQ(form.graph.find("s"), nullptr);
  const Node& conv = form.graph.node("c");
  EXPECT_EQ(conv.op, Op::kTapConv);
  EXPECT_EQ(conv.inputs, (std::vector<std::string>{"a"}));
  EXPECT_TRUE(conv.bias);
  EXPECT_EQ(conv.kernel, (Extent2{3, 3}));
  EXPECT_EQ(conv.padding, (Extent2{2, 2}));
  EXPECT_EQ(conv.dilation, (Extent2{2, 2}));
  EXPECT_EQ(conv.stride, (Extent2{2, 2}));
  EXPECT_EQ(conv.shape, (Shape{4, 4, 4}));
  const TapLayout layout = tap_layout(form.graph, conv);
  EXPECT_EQ(layout.taps, 1);
  EXPECT_EQ(layout.share_outputs, 4);
  EXPECT_EQ(layout.sets(), 11);
  // Channels 9 and 10 do not fill a round of nine: they stay where they are.
  EXPECT_EQ(form.shifted.at("c"), (std::vector<uint16_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 4}));
  EXPECT_EQ(form.folded.at("c"), "m");
  EXPECT_TRUE(frozen_form(form.graph).graph == form.graph);
}

TEST(Fold, AShiftStaysWhereSomethingElseNeedsIt) {
  const auto stays = [](const std::string& nodes) {
    const FrozenForm form = frozen_form(parse_network("onetap-net 1\nx = input 9x8x8\ns = shift x kernel=3\n" + nodes));
    EXPECT_TRUE(form.shifted.empty()) << nodes;
    EXPECT_NE(form.graph.find("s"), nullptr) << nodes;
  };
  stays("n = bn s\nc = conv n out=4\n");     // a batch norm lies between
  stays("c = conv s out=9\nd = add c s\n");  // read twice
  stays("c = conv s out=4\noutput s\n");     // the caller reads it
  stays("c = conv s out=4 pad=1\n");         // zeros around what was moved
  stays("c = conv s out=9 groups=3\n");
  stays("c = conv s out=4 kernel=3\n");
  stays("c = conv s out=4 method=bwn\n");  // one bit a weight
  stays("c = activeshift s\n");
  // A chain: the last one goes.
  const FrozenForm form = frozen_form(
      parse_network("onetap-net 1\nx = input 9x8x8\ns = shift x kernel=3\nt = shift s kernel=3\nc = conv t out=2\n"));
  EXPECT_EQ(form.graph.node("c").inputs[0], "s");
}

// A padding beyond what a convolution may have.
TEST(Fold, AShiftThatIsTooFarStays) {
  const FrozenForm form = frozen_form(
      parse_network("onetap-net 1\nx = input 9x8x8\ns = shift x kernel=63 dilation=34\nc = conv s out=4\n"));
  EXPECT_TRUE(form.shifted.empty());
}

TEST(Fold, BinaryMethodsStayBinary) {
  const FrozenForm form =
      frozen_form(parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4 kernel=3 method=bc\nn = bn c\n"
                                "d = conv n out=4 method=bwn scale=filter\ne = conv d out=4\ng = gap e\n"
                                "f = linear g out=2 method=bwn\n"));
  for (const char* name : {"c", "d", "f"}) EXPECT_EQ(form.graph.node(name).method.name(), "binary") << name;
  EXPECT_TRUE(form.graph.node("e").method.is_dense());
  EXPECT_EQ(form.graph.node("c").op, Op::kConv);
  EXPECT_EQ(form.folded.at("c"), "n");
  EXPECT_TRUE(frozen_form(form.graph).graph == form.graph);
  EXPECT_TRUE(parse_network(network_text(form.graph)) == form.graph);
}

TEST(Fold, AFrozenConvolutionKeepsItsWholeLayout) {
  const Graph graph =
      parse_network("onetap-net 1\nx = input 6x8x8\na = tapconv x out=8 kernel=3 pad=1 share=4x3 dropped=12\n");
  const TapLayout layout = tap_layout(graph, graph.node("a"));
  EXPECT_EQ(layout.sets(), 2 * 2);
  EXPECT_TRUE(layout.may_be_empty);
  EXPECT_EQ(layout.kept_weights(), 8 * 6 - 12);
  EXPECT_EQ(frozen_taps(layout), graph.node("a").method);
}

TEST(Fold, AFrozenNetworkComesBackAsItIs) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Graph frozen = frozen_form(testing::random_graph(seed)).graph;
    EXPECT_TRUE(frozen_form(frozen).graph == frozen);
    EXPECT_TRUE(parse_network(network_text(frozen)) == frozen);
  }
}

}  // namespace
}  // namespace onetap
