#include "onetap/graph/uses.h"

#include "onetap/graph/text.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

Graph diamond() {
  return parse_network(R"(onetap-net 1
network diamond
x = input 3x8x8
a = conv x out=4
b = relu a
c = add a b
d = add b b
e = add c d
dead = relu e
output e
)");
}

TEST(Uses, KnowsWhoReadsWhat) {
  const Graph graph = diamond();
  const Uses uses(graph);
  const auto node = [&](const char* name) -> const Node& { return graph.node(name); };
  EXPECT_EQ(uses.readers(node("a")).size(), 2u);
  EXPECT_EQ(uses.readers(node("b")).size(), 3u);  // d reads it twice
  EXPECT_EQ(uses.only_reader(node("x")), &node("a"));
  EXPECT_EQ(uses.only_reader(node("b")), nullptr);
  EXPECT_EQ(uses.count(node("dead")), 0u);
  // The output is needed by the caller, so its one reader is not alone.
  EXPECT_TRUE(uses.is_output(node("e")));
  EXPECT_EQ(uses.count(node("e")), 2u);
  EXPECT_EQ(uses.only_reader(node("e")), nullptr);
}

TEST(Uses, KnowsWhenAValueEnds) {
  const Graph graph = diamond();
  const Uses uses(graph);
  EXPECT_EQ(uses.last_use(graph.node("a")), 3u);
  EXPECT_EQ(uses.last_use(graph.node("b")), 4u);
  EXPECT_EQ(uses.last_use(graph.node("dead")), 6u);
  EXPECT_EQ(uses.last_use(graph.node("e")), graph.nodes().size());
  EXPECT_EQ(uses.ending_at(4), std::vector<const Node*>{&graph.node("b")});
  EXPECT_EQ(uses.ending_at(3), std::vector<const Node*>{&graph.node("a")});
  EXPECT_TRUE(uses.ending_at(6).empty());
}

}  // namespace
}  // namespace onetap
