#include "onetap/runtime/reference.h"

#include "onetap/graph/method_table.h"
#include "onetap/graph/text.h"
#include "tests/tap/random_net.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onetap {
namespace {

using testing::random_floats;

// y[d, p] = sum over c and taps of w * x[c, p * stride + offset], written straight from the definition.
std::vector<float> by_definition(const TapNet& net, const Node& node, const std::vector<float>& x) {
  const Shape& in = net.graph.source(node).shape;
  const std::vector<float> weight = dense_weight(net, node);
  const int64_t inputs = in[0] / node.groups;
  std::vector<float> y;
  for (int64_t d = 0; d < node.shape[0]; ++d) {
    for (int64_t oy = 0; oy < node.shape[1]; ++oy) {
      for (int64_t ox = 0; ox < node.shape[2]; ++ox) {
        double sum = node.bias ? net.tensors(node).bias.data<float>()[d] : 0.0;
        for (int64_t c = 0; c < inputs; ++c) {
          for (int64_t k = 0; k < node.kernel.area(); ++k) {
            const int64_t iy = oy * node.stride.h + k / node.kernel.w * node.dilation.h - node.padding.h;
            const int64_t ix = ox * node.stride.w + k % node.kernel.w * node.dilation.w - node.padding.w;
            if (iy < 0 || ix < 0 || iy >= in[1] || ix >= in[2]) continue;
            const int64_t from = d / (node.out / node.groups) * inputs + c;
            sum += static_cast<double>(weight[static_cast<size_t>((d * inputs + c) * node.kernel.area() + k)]) *
                   x[static_cast<size_t>((from * in[1] + iy) * in[2] + ix)];
          }
        }
        y.push_back(static_cast<float>(sum));
      }
    }
  }
  return y;
}

TEST(Reference, ConvolutionsFollowTheDefinition) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, Purpose::kTest);
    const auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random.below(static_cast<uint32_t>(high - low + 1)));
    };
    Graph graph("one");
    graph.add(testing::input_node({2 * pick(1, 3), pick(1, 9), pick(1, 9)}));
    Node node = testing::conv_node("c", "x", 2 * pick(1, 3), 1);
    node.kernel = {pick(1, 7), pick(1, 7)};
    node.stride = {pick(1, 3), pick(1, 3)};
    node.dilation = {pick(1, 2), pick(1, 2)};
    node.padding = {node.kernel.h * node.dilation.h / 2 + pick(0, 2), node.kernel.w * node.dilation.w / 2 + pick(0, 2)};
    node.groups = pick(1, 2);
    node.bias = random.coin();
    if (random.coin() && node.kernel.area() > 1) {
      node.op = Op::kTapConv;
      const int64_t taps = pick(1, node.kernel.area());
      node.method = frozen_taps(taps, pick(1, node.out));
    }
    graph.add(node);
    const TapNet net = random_tap_net(graph, seed);
    check_tap_net(net);
    const auto x = random_floats(static_cast<size_t>(element_count(graph.node("x").shape)), random);
    const auto expected = by_definition(net, graph.node("c"), x);
    const auto got = run_reference(net, x.data());
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4) << seed;
  }
}

std::vector<float> run_text(const std::string& nodes, const std::vector<float>& x) {
  return run_reference(random_tap_net(parse_network("onetap-net 1\n" + nodes), 0), x.data());
}

TEST(Reference, SmallOpsByHand) {
  const std::vector<float> x = {1, -2, 3, -4};  // 1x2x2
  const std::string in = "x = input 1x2x2\n";
  using V = std::vector<float>;
  EXPECT_EQ(run_text(in + "y = relu x\n", x), (V{1, 0, 3, 0}));
  EXPECT_EQ(run_text(in + "y = add x x x\n", x), (V{3, -6, 9, -12}));
  EXPECT_EQ(run_text(in + "y = concat x x\n", x), (V{1, -2, 3, -4, 1, -2, 3, -4}));
  EXPECT_EQ(run_text(in + "y = gap x\n", x), (V{-0.5f}));
  EXPECT_EQ(run_text(in + "y = maxpool x kernel=2 pad=1 stride=2\n", x), (V{1, -2, 3, -4}));
  EXPECT_EQ(run_text(in + "y = avgpool x kernel=2 pad=1 stride=2\n", x), (V{0.25f, -0.5f, 0.75f, -1}));
  EXPECT_EQ(run_text(in + "y = subsample x out=3 stride=2\n", x), (V{0, 1, 0}));
  EXPECT_EQ(run_text(in + "y = flatten x\n", x), x);
}

TEST(Reference, AffineAndLinear) {
  TapNet net = random_tap_net(
      parse_network("onetap-net 1\nx = input 2x1x1\na = affine x\nf = flatten a\nl = linear f out=1\n"), 0);
  net.layers["a"] = {Tensor::of<float>({2, 3}, {2}), Tensor::of<float>({10, 20}, {2}), {}};
  net.layers["l"] = {Tensor::of<float>({1, 100}, {1, 2}), Tensor::of<float>({0.5f}, {1}), {}};
  const std::vector<float> x = {1, 2};
  EXPECT_EQ(run_reference(net, x.data()), (std::vector<float>{12 + 2600 + 0.5f}));
}

}  // namespace
}  // namespace onetap
