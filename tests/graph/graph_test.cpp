#include "onetap/graph/graph.h"

#include "onetap/graph/method_table.h"
#include "onetap/graph/op.h"
#include "tests/graph/random_graph.h"
#include "tests/support/support.h"

namespace onetap {
namespace {

using testing::conv_node;
using testing::expect_error;
using testing::input_node;

Graph with_input(const Shape& shape) {
  Graph graph("g");
  graph.add(input_node(shape));
  return graph;
}

void expect_refused(const Node& node, const std::string& why, const Shape& image = {3, 8, 8}) {
  Graph graph = with_input(image);
  expect_error(ErrorKind::kUsage, why, [&] { graph.add(node); });
}

// (n + 2p - d(k-1) - 1) / s + 1, the textbook formula, by counting the places a window fits.
int64_t places(int64_t n, int64_t k, int64_t s, int64_t p, int64_t d) {
  int64_t count = 0;
  for (int64_t at = -p; at + d * (k - 1) <= n + p - 1; at += s) ++count;
  return count;
}

TEST(Graph, ConvShapesFollowFromCountingWindows) {
  for (int64_t n : {5, 8, 33}) {
    for (int64_t k : {1, 2, 3, 5}) {
      for (int64_t s : {1, 2, 3}) {
        for (int64_t p : {0, 1, 2}) {
          for (int64_t d : {1, 2}) {
            if (d * (k - 1) + 1 > n + 2 * p) continue;
            Graph graph = with_input({3, n, n + 1});
            Node node = conv_node("c", "x", 7, k);
            node.stride = {s, s};
            node.padding = {p, p};
            node.dilation = {d, d};
            graph.add(node);
            EXPECT_EQ(graph.node("c").shape, (Shape{7, places(n, k, s, p, d), places(n + 1, k, s, p, d)}));
          }
        }
      }
    }
  }
}

TEST(Graph, OtherOps) {
  Graph graph = with_input({4, 9, 9});
  const auto add = [&](Op op, const char* name, std::vector<std::string> inputs, int64_t out = 0, int64_t k = 1,
                       int64_t stride = 1) {
    Node node = default_node(op);
    node.name = name;
    node.inputs = std::move(inputs);
    node.out = out;
    node.kernel = {k, k};
    node.stride = {stride, stride};
    return graph.node(graph.add(node)).shape;
  };
  EXPECT_EQ(add(Op::kBatchNorm, "bn", {"x"}), (Shape{4, 9, 9}));
  EXPECT_EQ(add(Op::kRelu, "relu", {"bn"}), (Shape{4, 9, 9}));
  EXPECT_EQ(add(Op::kMaxPool, "mp", {"relu"}, 0, 3, 2), (Shape{4, 4, 4}));
  EXPECT_EQ(add(Op::kAvgPool, "ap", {"relu"}, 0, 2, 2), (Shape{4, 4, 4}));
  EXPECT_EQ(add(Op::kAdd, "add", {"mp", "ap", "mp"}), (Shape{4, 4, 4}));
  EXPECT_EQ(add(Op::kConcat, "cat", {"mp", "add"}), (Shape{8, 4, 4}));
  EXPECT_EQ(add(Op::kSubsample, "sub", {"relu"}, 7, 1, 2), (Shape{7, 5, 5}));
  EXPECT_EQ(add(Op::kFlatten, "flat", {"cat"}), (Shape{128}));
  EXPECT_EQ(add(Op::kGlobalAvgPool, "gap", {"cat"}), (Shape{8}));
  EXPECT_EQ(add(Op::kLinear, "fc", {"flat"}, 10), (Shape{10}));
  EXPECT_EQ(graph.output(), "fc");
  graph.set_output("gap");
  EXPECT_EQ(graph.output(), "gap");
  graph.check_classifier(8);
  expect_error(ErrorKind::kUsage, "expected 10 values", [&] { graph.check_classifier(10); });
}

TEST(Graph, RefusesWhatCannotBe) {
  Node node = conv_node("c", "x", 4, 3);
  expect_refused(conv_node("c", "nowhere", 4, 3), "defined before it, got 'nowhere'");
  expect_refused(conv_node("c", "x", 0, 3), "expected out in 1..");
  expect_refused(conv_node("c", "x", 4, 9), "does not fit 8 rows");
  expect_refused(conv_node("x", "x", 4, 3), "two nodes are called 'x'");
  expect_refused(conv_node("x.y", "x", 4, 3), "front part of 'x.y'");
  for (const char* name : {"", ".a", "a.", "a..b", "a b", "a/b", "a=b"}) {
    expect_refused(conv_node(name, "x", 4, 3), "expected a name");
  }
  node.groups = 2;
  expect_refused(node, "expected groups to divide 3 inputs and 4 outputs, got 2");
  node = conv_node("c", "x", 4, 3);
  node.stride = {0, 1};
  expect_refused(node, "expected stride in 1..");
  node = default_node(Op::kLinear);
  node.name = "fc";
  node.inputs = {"x"};
  node.out = 3;
  expect_refused(node, "expected a vector");
  node = default_node(Op::kAdd);
  node.name = "a";
  node.inputs = {"x"};
  expect_refused(node, "input(s) for add, got 1");
  expect_refused(input_node({3, 0, 8}, "y"), "every extent");
  expect_refused(input_node({1 << 20, 1 << 20, 8}, "y"), "more than 2^40");
}

TEST(Graph, RefusesImpossibleMethods) {
  const auto refused = [](Method method, int64_t kernel, const std::string& why) {
    Graph graph = with_input({3, 8, 8});
    Node node = conv_node("c", "x", 4, kernel);
    node.padding = {kernel / 2, kernel / 2};
    graph.add(node);
    expect_error(ErrorKind::kUsage, why, [&] { graph.set_method("c", method); });
    EXPECT_TRUE(graph.node("c").method.is_dense()) << "a refused method must not stay";
  };
  refused(sal_method(), 1, "more than one position");
  refused(sal_method(10), 3, "expected taps in 1..9 for a 3x3 kernel, got 10");
  refused(sal_method(0), 3, "expected taps in 1..9");
  refused(sal_method(1, 5), 3, "expected share in 1..4");
  refused(frozen_taps(1, 1), 3, "a conv cannot have the method 'frozen'");
}

TEST(Graph, OneInputOnly) {
  Graph graph = with_input({3, 8, 8});
  graph.add(input_node({3, 8, 8}, "y"));
  expect_error(ErrorKind::kUsage, "expected one input", [&] { graph.input(); });
  expect_error(ErrorKind::kUsage, "no nodes", [] { (void)Graph("g").output(); });
}

}  // namespace
}  // namespace onetap
