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

TEST(Fold, AFrozenConvolutionKeepsItsWholeLayout) {
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 6x8x8\na = tapconv x out=8 kernel=3 pad=1 share=4 share_inputs=3 may_be_empty=1\n");
  const TapLayout layout = tap_layout(graph, graph.node("a"));
  EXPECT_EQ(layout.sets(), 2 * 2);
  EXPECT_TRUE(layout.may_be_empty);
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
