// Layers whose blocks of outputs x inputs have their positions in common, and the straight-through forward pass.
#include "onetap/nn/attention.h"
#include "onetap/nn/fixed_taps.h"
#include "onetap/nn/shift_attention_conv.h"
#include "tests/nn/gradients.h"
#include "tests/support/support.h"

#include <limits>

namespace onetap::nn {
namespace {

using ::onetap::testing::check_gradient;
using ::onetap::testing::expect_error;
using BlockOptions = ShiftAttentionConvOptions<2>;

struct BlockCase {
  int64_t in, out, share, share_inputs, taps, stride;
};

std::ostream& operator<<(std::ostream& out, const BlockCase& c) {
  return out << c.in << " to " << c.out << " share " << c.share << "x" << c.share_inputs << " taps " << c.taps
             << " stride " << c.stride;
}

BlockOptions block_options(const BlockCase& c) {
  return BlockOptions(c.in, c.out, 3).share(c.share).share_inputs(c.share_inputs).taps(c.taps).stride(c.stride);
}

// Blocks that divide the layer, blocks that do not, all outputs, one set for all slices.
const BlockCase kBlockCases[] = {{8, 8, 4, 4, 1, 1}, {5, 6, 4, 4, 1, 2}, {3, 5, 5, 1, 1, 1},
                                 {6, 5, 5, 4, 2, 1}, {3, 4, 4, 3, 1, 1}, {7, 3, 1, 3, 2, 2}};

// By its definition: slice (d, c) has what set (d / share, c / share_inputs) has.
torch::Tensor by_slice(const torch::Tensor& by_set, const BlockCase& c) {
  auto all = torch::empty({c.out, c.in, by_set.size(-1)}, by_set.options());
  for (int64_t d = 0; d < c.out; ++d) {
    for (int64_t i = 0; i < c.in; ++i) all[d][i].copy_(by_set[d / c.share][i / c.share_inputs]);
  }
  return all.view({c.out, c.in, 3, 3});
}

torch::Tensor all_logits(const ShiftAttentionConv2d& layer) {
  return layer->logits().detach();
}

class SharedBlocks : public ::testing::TestWithParam<BlockCase> {};
INSTANTIATE_TEST_SUITE_P(All, SharedBlocks, ::testing::ValuesIn(kBlockCases));

TEST_P(SharedBlocks, SoftAndHardMasksAreThoseOfTheSets) {
  torch::manual_seed(31);
  const BlockCase& c = GetParam();
  ShiftAttentionConv2d layer(block_options(c));
  const int64_t blocks_down = (c.out + c.share - 1) / c.share,
                blocks_across = (c.in + c.share_inputs - 1) / c.share_inputs;
  ASSERT_EQ(layer->attention.numel(), c.taps * blocks_down * blocks_across * 9);
  layer->set_temperature(0.7);
  EXPECT_TRUE(layer->mask().equal(by_slice(soft_attention(all_logits(layer), 0.7), c)));
  layer->set_mode(AttentionMode::kHard);
  EXPECT_TRUE(layer->mask().equal(by_slice(hard_mask(all_logits(layer)), c)));
  const auto frozen = layer->freeze();
  EXPECT_EQ(frozen.codes.sizes(), at::IntArrayRef({blocks_down, blocks_across, c.taps}));
  EXPECT_EQ(frozen.weight.sizes(), at::IntArrayRef({c.out, c.in, c.taps}));
  // Every kept weight, and no other, is in the hard weight.
  EXPECT_NEAR(frozen.weight.sum().item<double>(), layer->masked_weight().sum().item<double>(), 1e-4);
}

TEST_P(SharedBlocks, GradientsAgreeWithFiniteDifferences) {
  const BlockCase& c = GetParam();
  for (const double temperature : {6.7, 0.3}) {
    torch::manual_seed(32);
    ShiftAttentionConv2d layer(block_options(c));
    layer->to(torch::kFloat64);
    layer->set_temperature(temperature);
    auto x = torch::randn({2, c.in, 4, 5}, torch::kFloat64).requires_grad_();
    const auto probe = torch::randn_like(layer->forward(x)).detach();
    const auto loss = [&] { return (layer->forward(x) * probe).sum(); };
    check_gradient(loss, layer->weight, "W");
    check_gradient(loss, layer->attention, "A");
    check_gradient(loss, x, "x");
  }
}

// The forward pass is the hard one, bit for bit.
TEST_P(SharedBlocks, StraightThroughIsHardForward) {
  torch::manual_seed(33);
  const BlockCase& c = GetParam();
  ShiftAttentionConv2d layer(block_options(c).relax(Relax::kStraightThrough));
  const auto x = torch::randn({2, c.in, 5, 4});
  for (const double temperature : {6.7, 0.02}) {
    layer->set_temperature(temperature);
    layer->set_mode(AttentionMode::kSoft);
    const auto trained = layer->forward(x);
    EXPECT_TRUE(layer->mask().equal(by_slice(hard_mask(all_logits(layer)), c)));
    layer->set_mode(AttentionMode::kHard);
    EXPECT_TRUE(trained.equal(layer->forward(x)));
  }
}

// W and x have the gradients of the hard layer. A has that of the sum over all slices and positions of g W P(A), where
// g is the gradient of the hard layer's effective weight: as if P had been in the forward pass.
TEST_P(SharedBlocks, StraightThroughGradientsAreTheSurrogates) {
  const BlockCase& c = GetParam();
  for (const double temperature : {6.7, 0.3}) {
    torch::manual_seed(34);
    ShiftAttentionConv2d layer(block_options(c).relax(Relax::kStraightThrough));
    layer->to(torch::kFloat64);
    layer->set_temperature(temperature);
    auto x = torch::randn({2, c.in, 4, 5}, torch::kFloat64).requires_grad_();
    const auto probe = torch::randn_like(layer->forward(x)).detach();
    const auto loss = [&] { return (layer->forward(x).square() * probe).sum(); };
    check_gradient(loss, layer->weight, "W");
    check_gradient(loss, x, "x");

    auto hard = (layer->weight.detach() * by_slice(hard_mask(all_logits(layer)), c)).requires_grad_();
    const auto y = torch::conv2d(x.detach(), hard, {}, c.stride, 1);
    const auto g = torch::autograd::grad({(y.square() * probe).sum()}, {hard})[0];
    const auto got = torch::autograd::grad({loss()}, {layer->attention})[0].flatten();
    const auto surrogate = [&] {
      return (g * layer->weight.detach() * by_slice(soft_attention(all_logits(layer), temperature), c))
          .sum()
          .item<double>();
    };
    const torch::NoGradGuard no_grad;
    constexpr double kStep = 1e-6;
    const auto values = layer->attention.flatten();
    const double scale = got.abs().max().item<double>() + 1e-12;
    for (int64_t i = 0; i < values.numel(); ++i) {
      const double old = values[i].item<double>();
      values[i] = old + kStep;
      const double up = surrogate();
      values[i] = old - kStep;
      const double down = surrogate();
      values[i] = old;
      ASSERT_NEAR(got[i].item<double>(), (up - down) / (2 * kStep), 1e-5 * scale + 1e-9) << i << " at " << temperature;
    }
  }
}

TEST(StraightThrough, NanLogitsShow) {
  auto logits = torch::rand({1, 2, 1, 9});
  logits[0][1][0][3] = std::numeric_limits<float>::quiet_NaN();
  const auto mask = trained_attention(logits, torch::scalar_tensor(1.0, torch::kFloat64), Relax::kStraightThrough);
  EXPECT_EQ(mask[0].sum().item<double>(), 1);
  EXPECT_TRUE(mask[1].isnan().all().item<bool>());
}

// The order of logits stays in the softmax: ties go to the lower position in the forward pass, too.
TEST(StraightThrough, TiesGoToTheLowerPosition) {
  auto logits = torch::zeros({1, 1, 1, 9});
  logits[0][0][0][5] = logits[0][0][0][2] = 1.0;
  const auto mask = trained_attention(logits, torch::scalar_tensor(1.0, torch::kFloat64), Relax::kStraightThrough);
  EXPECT_EQ(mask.argmax(-1).item<int64_t>(), 2);
  EXPECT_EQ(mask.sum().item<double>(), 1);
}

TEST(BlockShareLayers, AreCheckedAndNamed) {
  expect_error(ErrorKind::kUsage, "expected share_inputs in 1..4 (input channels per group), got 5",
               [] { ShiftAttentionConv2d layer(BlockOptions(8, 4, 3).groups(2).share_inputs(5)); });
  expect_error(ErrorKind::kUsage, "expected share_inputs in 1..8",
               [] { ShiftAttentionConv2d layer(BlockOptions(8, 4, 3).share_inputs(0)); });
  std::ostringstream text;
  ShiftAttentionConv2d(BlockOptions(8, 4, 3).share(4).share_inputs(2))->pretty_print(text);
  EXPECT_NE(text.str().find("share=4x2"), std::string::npos) << text.str();
}

TEST(BlockShareLayers, ANodeSaysThemAll) {
  Node node;
  node.name = "c";
  node.op = Op::kConv;
  node.out = 6;
  node.kernel = {3, 3};
  node.method = sal_method(1, {BlockShare::kAllOutputs, 4});
  const auto layer = std::dynamic_pointer_cast<ShiftAttentionConvBase>(make_trained_conv(node, 10));
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->attention.sizes(), at::IntArrayRef({1, 3, 9}));
  EXPECT_EQ(layer->relax(), Relax::kStraightThrough);

  node.method = Method("random-taps").set("share", BlockShare(4, 4));
  EXPECT_EQ(FixedTapsConv(node, 10).positions.sizes(), at::IntArrayRef({2, 3, 1}));
  // One set for 6 x 2 slices: the position with the largest sum of magnitudes, which is no slice's own largest.
  node.method = Method("magnitude").set("share", BlockShare(BlockShare::kAllOutputs, 2));
  FixedTapsConv magnitude(node, 2);
  const torch::NoGradGuard no_grad;
  magnitude.weight.zero_();
  const auto flat = magnitude.weight.flatten(2);
  for (int64_t d = 0; d < 6; ++d) {
    for (int64_t c = 0; c < 2; ++c) {
      flat[d][c][7] = d % 2 == 0 ? -2.0 : 2.0;  // 24 in all
      flat[d][c][c] = 3.0;                      // 18 at 0, 18 at 1
    }
  }
  magnitude.weights_imported({/*dense=*/true});
  EXPECT_EQ(magnitude.positions.item<int64_t>(), 7);
}

}  // namespace
}  // namespace onetap::nn
