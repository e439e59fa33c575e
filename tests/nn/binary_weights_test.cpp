#include "onetap/nn/binary_weights.h"

#include "onetap/graph/op.h"
#include "onetap/graph/text.h"
#include "onetap/nn/graph_module.h"
#include "tests/nn/gradients.h"
#include "tests/support/support.h"

namespace onetap::nn {
namespace {

using ::onetap::testing::check_gradient;

Node node_of(Op op, const Method& method) {
  Node node = default_node(op);
  node.name = "layer";
  node.out = 3;
  node.bias = true;
  if (op == Op::kConv) {
    node.kernel = {3, 3};
    node.padding = {1, 1};
  }
  node.method = method;
  return node;
}

std::vector<Method> all_methods() {
  return {Method("bc"), Method("bwn"), Method("bwn").set("scale", std::string("filter"))};
}

TEST(BinaryWeights, AreSignsTimesTheScale) {
  const auto w = torch::tensor({{0.5f, -0.25f, 0.0f}, {-3.0f, -1.0f, 2.0f}});
  // Zero counts as positive. Mean magnitudes: 6.75 / 6 of all, 0.25 and 2 of the rows.
  EXPECT_TRUE(binary_weight(w, BinaryScale::kOne).equal(torch::tensor({{1.f, -1.f, 1.f}, {-1.f, -1.f, 1.f}})));
  EXPECT_TRUE(binary_weight(w, BinaryScale::kLayer)
                  .equal(torch::tensor({{1.125f, -1.125f, 1.125f}, {-1.125f, -1.125f, 1.125f}})));
  EXPECT_TRUE(binary_weight(w, BinaryScale::kFilter).equal(torch::tensor({{0.25f, -0.25f, 0.25f}, {-2.f, -2.f, 2.f}})));
}

// The stated rule: the gradient of the binary weight, unchanged, also for BWN, whose scale depends on W.
TEST(BinaryWeights, GradientGoesStraightThrough) {
  for (const BinaryScale scale : {BinaryScale::kOne, BinaryScale::kLayer, BinaryScale::kFilter}) {
    auto w = torch::randn({4, 2, 3, 3}).requires_grad_();
    const auto given = torch::randn({4, 2, 3, 3});
    EXPECT_TRUE(torch::autograd::grad({binary_weight(w, scale)}, {w}, {given})[0].equal(given));
  }
}

// With respect to everything but the weights the layers are ordinary ones.
TEST(BinaryWeights, GradientsOfInputsAndBiases) {
  torch::manual_seed(6);
  for (const Method& method : all_methods()) {
    for (const Op op : {Op::kConv, Op::kLinear}) {
      BinaryWeights layer(node_of(op, method), 2);
      layer.to(torch::kFloat64);
      const std::vector<int64_t> shape =
          op == Op::kConv ? std::vector<int64_t>{2, 2, 4, 5} : std::vector<int64_t>{3, 2};
      auto x = torch::randn(shape, torch::kFloat64).requires_grad_();
      const auto loss = [&] { return layer.forward(x).square().sum(); };
      check_gradient(loss, layer.bias, "bias");
      check_gradient(loss, x, "x");
      // That of the weights is the gradient of an ordinary layer with the binary weights.
      auto binary = layer.effective_weight().detach().requires_grad_();
      const auto y =
          op == Op::kConv ? torch::conv2d(x, binary, layer.bias, 1, 1) : torch::linear(x, binary, layer.bias);
      const auto expected = torch::autograd::grad({y.square().sum()}, {binary})[0];
      EXPECT_TRUE(torch::allclose(torch::autograd::grad({loss()}, {layer.weight})[0], expected, 1e-12, 1e-12));
    }
  }
}

TEST(BinaryWeights, BinaryConnectAloneClips) {
  for (const Method& method : all_methods()) {
    BinaryWeights layer(node_of(Op::kConv, method), 2);
    const torch::NoGradGuard no_grad;
    layer.weight.fill_(3).select(0, 0).fill_(-2);
    layer.after_step();
    const double limit = method.name() == "bc" ? 1 : 3;
    EXPECT_EQ(layer.weight.max().item<double>(), limit);
    EXPECT_EQ(layer.weight.min().item<double>(), method.name() == "bc" ? -1 : -2);
  }
}

TEST(BinaryWeights, FreezeToOneMagnitudeAnOutput) {
  torch::manual_seed(7);
  for (const Method& method : all_methods()) {
    BinaryWeights layer(node_of(Op::kConv, method), 2);
    const FrozenConv frozen = layer.freeze();
    EXPECT_FALSE(frozen.codes.defined());
    EXPECT_TRUE(frozen.bias.equal(layer.bias));
    const auto magnitude = frozen.weight.abs().flatten(1);
    EXPECT_TRUE(magnitude.equal(magnitude.narrow(1, 0, 1).expand_as(magnitude)));
    EXPECT_TRUE(frozen.weight.ge(0).equal(layer.weight.ge(0)));
  }
}

TEST(BinaryWeights, LinearLayersOfANetworkHaveTheMethod) {
  torch::manual_seed(8);
  GraphModule module(
      parse_network("onetap-net 1\nx = input 3x4x4\nc = conv x out=4 kernel=3 pad=1 method=bwn\n"
                    "p = gap c\nfc = linear p out=5 method=bwn scale=filter\n"));
  ASSERT_EQ(module->trained_layers().size(), 2u);
  EXPECT_EQ(module->trained_layers()[1].name, "fc");
  const auto p = module->named_parameters();
  EXPECT_EQ(p["fc.weight"].sizes(), at::IntArrayRef({5, 4}));
  const auto x = torch::randn({2, 3, 4, 4});
  const auto c = p["c.weight"], fc = p["fc.weight"];
  const auto hidden = torch::conv2d(x, c.sign() * c.abs().mean(), {}, 1, 1).mean({2, 3});
  const auto y = torch::linear(hidden, fc.sign() * fc.abs().mean(1, true), p["fc.bias"]);
  EXPECT_TRUE(torch::allclose(module->forward(x), y, 1e-5, 1e-6));
}

}  // namespace
}  // namespace onetap::nn
