#include "onetap/nn/fixed_taps.h"

#include "onetap/graph/op.h"
#include "onetap/graph/text.h"
#include "onetap/nn/attention.h"
#include "onetap/nn/graph_module.h"
#include "tests/nn/gradients.h"
#include "tests/support/support.h"

#include <set>

namespace onetap::nn {
namespace {

using ::onetap::testing::check_gradient;
using ::onetap::testing::expect_error;

Node conv_node(const char* method, int64_t out, int64_t taps, int64_t share, bool bias = false) {
  Node node = default_node(Op::kConv);
  node.name = "c";
  node.out = out;
  node.kernel = {3, 3};
  node.padding = {1, 1};
  node.bias = bias;
  node.method = Method(method).set("taps", taps).set("share", share);
  return node;
}

TEST(FixedTaps, RandomPositionsAreDistinctAndSeeded) {
  const Node node = conv_node("random-taps", 20, 3, 8);
  torch::manual_seed(1);
  const FixedTapsConv a(node, 10);
  torch::manual_seed(1);
  const FixedTapsConv b(node, 10);
  torch::manual_seed(2);
  const FixedTapsConv c(node, 10);
  EXPECT_EQ(a.positions.sizes(), at::IntArrayRef({3, 10, 3}));  // blocks of 8, 8 and 4 outputs
  EXPECT_TRUE(a.positions.equal(b.positions));
  EXPECT_FALSE(a.positions.equal(c.positions));
  std::set<int64_t> seen;
  for (int64_t block = 0; block < 3; ++block) {
    for (int64_t input = 0; input < 10; ++input) {
      for (int64_t tap = 0; tap < 3; ++tap) {
        const auto at = a.positions[block][input][tap].item<int64_t>();
        seen.insert(at);
        EXPECT_TRUE(at >= 0 && at < 9);
        if (tap > 0) {
          EXPECT_LT(a.positions[block][input][tap - 1].item<int64_t>(), at);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 9u);  // 90 draws miss one of nine with a chance of 1e-4; the seed is fixed
}

// Every position is drawn about as often: 9000 taps, standard deviation 30 of a position's 1000.
TEST(FixedTaps, RandomPositionsAreUniform) {
  torch::manual_seed(3);
  const FixedTapsConv layer(conv_node("random-taps", 100, 1, 1), 90);
  const auto counts = torch::bincount(layer.positions.flatten(), {}, 9);
  EXPECT_LT((counts - 1000).abs().max().item<int64_t>(), 150);
}

TEST(FixedTaps, KeepsTheWeightsAtItsPositionsAlone) {
  torch::manual_seed(4);
  FixedTapsConv layer(conv_node("random-taps", 5, 2, 2), 3);
  const auto weight = layer.weight.detach().flatten(2);
  const auto effective = layer.effective_weight().detach().flatten(2);
  for (int64_t d = 0; d < 5; ++d) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t s = 0; s < 9; ++s) {
        const bool kept = layer.positions[d / 2][c].eq(s).any().item<bool>();
        EXPECT_EQ(effective[d][c][s].item<float>(), kept ? weight[d][c][s].item<float>() : 0.0f);
      }
    }
  }
  const FrozenConv frozen = layer.freeze();
  EXPECT_EQ(frozen.weight.sizes(), at::IntArrayRef({5, 3, 2}));
  EXPECT_EQ(frozen.weight[4][1][0].item<float>(), weight[4][1][layer.positions[2][1][0].item<int64_t>()].item<float>());
}

TEST(FixedTaps, GradientsAreThoseOfFiniteDifferences) {
  torch::manual_seed(5);
  for (const char* method : {"random-taps", "magnitude"}) {
    FixedTapsConv layer(conv_node(method, 4, 2, 3, /*bias=*/true), 2);
    layer.to(torch::kFloat64);
    auto x = torch::randn({2, 2, 4, 5}, torch::kFloat64).requires_grad_();
    const auto loss = [&] { return layer.forward(x).square().sum(); };
    for (const auto& parameter : layer.parameters()) check_gradient(loss, parameter, method);
    check_gradient(loss, x, "x");
  }
}

TEST(FixedTaps, MagnitudeTakesTheLargestSumsOfABlock) {
  FixedTapsConv layer(conv_node("magnitude", 3, 2, 2), 1);
  const torch::NoGradGuard no_grad;
  layer.weight.zero_();
  const auto flat = layer.weight.flatten(2);
  // Outputs 0 and 1 share: position 4 has 3 + 3, position 8 has 5 + 0, position 0 has 0 + 4. Output 2 is alone.
  flat[0][0][4] = 3.0;
  flat[0][0][8] = -5.0;
  flat[1][0][4] = -3.0;
  flat[1][0][0] = 4.0;
  flat[2][0][7] = 0.5;
  layer.weights_imported({/*dense=*/true});
  EXPECT_TRUE(layer.positions.equal(torch::tensor({4, 8, 0, 7}).view({2, 1, 2})));  // ties: the lower position
}

TEST(FixedTaps, SumSetsAddsUpOverBlocks) {
  TapLayout layout;
  layout.outputs = 5;
  layout.inputs = 3;
  layout.positions = 2;
  layout.share_outputs = 2;
  layout.share_inputs = 2;
  const auto values = torch::arange(30, torch::kFloat64).view({5, 3, 2});
  const auto sums = sum_sets(values, layout);
  ASSERT_EQ(sums.sizes(), at::IntArrayRef({3, 2, 2}));
  EXPECT_EQ(sums[0][0][0].item<double>(), 0 + 2 + 6 + 8);
  EXPECT_EQ(sums[0][1][1].item<double>(), 5 + 11);
  EXPECT_EQ(sums[2][1][0].item<double>(), 28);
}

TEST(FixedTaps, PositionsAreBuffersAndDescribeTheLayer) {
  GraphModule module(
      parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4 kernel=3 pad=1 method=random-taps "
                    "taps=2\np = gap c\nfc = linear p out=2\n"));
  EXPECT_TRUE(module->named_buffers().contains("c.positions"));
  const auto choice = module->trained_layers()[0].layer->describe();
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->p.sum().item<double>(), 4 * 3 * 2);
  EXPECT_TRUE(choice->positions.equal(module->named_buffers()["c.positions"]));
}

TEST(FixedTaps, RefusesPositionsThatCannotBe) {
  for (const std::vector<int64_t>& bad : {std::vector<int64_t>{9, 9}, {-1, 3}, {4, 4}, {5, 2}}) {
    FixedTapsConv layer(conv_node("random-taps", 1, 2, 1), 1);
    layer.positions.copy_(torch::tensor(bad).view({1, 1, 2}));
    expect_error(ErrorKind::kData, "expected positions in 0..8, ascending", [&] { layer.weights_imported({}); });
  }
}

}  // namespace
}  // namespace onetap::nn
