#include "onetap/nn/shift_attention_conv.h"

#include "onetap/nn/attention.h"
#include "tests/nn/gradients.h"
#include "tests/support/support.h"

namespace onetap::nn {
namespace {

using ::onetap::testing::check_gradient;
using ::onetap::testing::expect_error;

// A plain LibTorch convolution with the same window, for comparison.
torch::Tensor dense_conv(const torch::Tensor& x, const torch::Tensor& w, int64_t stride, int64_t padding,
                         int64_t dilation = 1) {
  switch (x.dim()) {
    case 3:
      return torch::conv1d(x, w, {}, stride, padding, dilation);
    case 4:
      return torch::conv2d(x, w, {}, stride, padding, dilation);
    default:
      return torch::conv3d(x, w, {}, stride, padding, dilation);
  }
}

struct Case {
  int64_t dims, stride, share, taps;
  double temperature;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.dims << "d stride " << c.stride << " share " << c.share << " taps " << c.taps << " T "
             << c.temperature;
}

std::shared_ptr<ShiftAttentionConvBase> make_layer(const Case& c, int64_t in = 2, int64_t out = 6) {
  const auto configure = [&](auto options) { return options.stride(c.stride).share(c.share).taps(c.taps); };
  std::shared_ptr<ShiftAttentionConvBase> layer;
  if (c.dims == 1) layer = ShiftAttentionConv1d(configure(ShiftAttentionConvOptions<1>(in, out, 3))).ptr();
  if (c.dims == 2) layer = ShiftAttentionConv2d(configure(ShiftAttentionConvOptions<2>(in, out, 3))).ptr();
  if (c.dims == 3) layer = ShiftAttentionConv3d(configure(ShiftAttentionConvOptions<3>(in, out, {2, 3, 2}))).ptr();
  layer->set_temperature(c.temperature);
  return layer;
}

torch::Tensor random_input(int64_t dims, int64_t in = 2) {
  std::vector<int64_t> shape = {2, in};
  for (int64_t i = 0; i < dims; ++i) shape.push_back(4 + i);
  return torch::randn(shape);
}

class SalGradient : public ::testing::TestWithParam<Case> {};

std::vector<Case> gradient_cases() {
  std::vector<Case> cases;
  for (const int64_t dims : {1, 2, 3}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t share : {1, 4}) {
        for (const int64_t taps : {1, 2}) {
          for (const double temperature : {6.7, 1.0, 0.1}) cases.push_back({dims, stride, share, taps, temperature});
        }
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, SalGradient, ::testing::ValuesIn(gradient_cases()));

TEST_P(SalGradient, AgreesWithFiniteDifferences) {
  torch::manual_seed(11);
  auto layer = make_layer(GetParam());
  layer->to(torch::kFloat64);
  auto x = random_input(GetParam().dims).to(torch::kFloat64).requires_grad_(true);
  const auto probe = torch::randn_like(layer->forward(x)).detach();
  const auto loss = [&] { return (layer->forward(x) * probe).sum(); };
  check_gradient(loss, layer->weight, "W");
  check_gradient(loss, layer->attention, "A");
  check_gradient(loss, x, "x");
}

TEST(ShiftAttentionConv, SoftIsAConvolutionWithScaledWeights) {
  torch::manual_seed(12);
  for (const int64_t dims : {1, 2}) {
    auto layer = make_layer({dims, 2, 4, 1, 1.0});
    const auto x = random_input(dims);
    const auto p = soft_attention(layer->attention.unsqueeze(0), 1.0);
    // Output d belongs to group d / 4.
    auto w = layer->weight.detach().clone();
    for (int64_t d = 0; d < w.size(0); ++d) w[d] *= p[d / 4].view(w[d].sizes());
    EXPECT_TRUE(torch::allclose(layer->forward(x), dense_conv(x, w, 2, 1), 1e-5, 1e-6));
  }
}

// With T -> 0 the soft layer is the convolution with the one-hot mask at argmax(A).
TEST(ShiftAttentionConv, FallingTemperatureReachesTheOneHotMask) {
  torch::manual_seed(13);
  for (const int64_t dims : {1, 2, 3}) {
    for (const int64_t share : {1, 4}) {
      auto layer = make_layer({dims, 1, share, 1, 1e-5});
      const auto x = random_input(dims);
      const auto one_hot = torch::one_hot(layer->attention.argmax(-1), layer->attention.size(-1)).to(torch::kFloat32);
      const auto mask = one_hot.repeat_interleave(share, 0).narrow(0, 0, 6).view(layer->weight.sizes());
      layer->set_mode(AttentionMode::kSoft);
      const auto soft = layer->forward(x);
      layer->set_mode(AttentionMode::kHard);
      EXPECT_TRUE(layer->mask().equal(mask));
      EXPECT_TRUE(torch::allclose(soft, layer->forward(x), 1e-5, 1e-6));
    }
  }
}

TEST(ShiftAttentionConv, TwoTapsReachTheTwoHotMaskWhereTheyDiffer) {
  torch::manual_seed(14);
  auto layer = make_layer({2, 1, 1, 2, 1e-5});
  const auto meet = layer->attention[0].argmax(-1).eq(layer->attention[1].argmax(-1));
  const auto soft = soft_attention(layer->attention, 1e-5);
  const auto hard = hard_mask(layer->attention);
  EXPECT_FALSE(meet.all().item<bool>());
  EXPECT_TRUE(torch::allclose(soft.index({meet.logical_not()}), hard.index({meet.logical_not()}), 0, 1e-6));
  EXPECT_TRUE(hard.sum(-1).eq(2).all().item<bool>());
}

// A frozen one-tap layer is a shifted copy per (output, input): y[d, p] = sum_c w[d, c] x[c, p + off(d, c)].
TEST(ShiftAttentionConv, HardIsASumOfShiftedInputs) {
  torch::manual_seed(15);
  ShiftAttentionConv2d layer(ShiftAttentionConvOptions<2>(3, 4, 3));
  layer->set_mode(AttentionMode::kHard);
  const auto x = torch::randn({1, 3, 6, 7});
  const auto y = layer->forward(x);
  for (int64_t d = 0; d < 4; ++d) {
    for (int64_t row = 0; row < 6; ++row) {
      for (int64_t column = 0; column < 7; ++column) {
        double sum = 0;
        for (int64_t c = 0; c < 3; ++c) {
          const int64_t best = layer->attention[d][c].argmax().item<int64_t>();
          const int64_t r = row + best / 3 - 1, k = column + best % 3 - 1;
          if (r < 0 || r >= 6 || k < 0 || k >= 7) continue;
          sum += layer->weight[d][c][best / 3][best % 3].item<double>() * x[0][c][r][k].item<double>();
        }
        ASSERT_NEAR(y[0][d][row][column].item<double>(), sum, 1e-5);
      }
    }
  }
}

TEST(ShiftAttentionConv, WindowOptionsReachTheConvolution) {
  torch::manual_seed(16);
  const auto x = torch::randn({2, 4, 9, 11});
  ShiftAttentionConv2d dilated(ShiftAttentionConvOptions<2>(4, 6, 3).dilation(2));
  const auto y = dilated->forward(x);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 6, 9, 11})) << "the default padding keeps the size";
  EXPECT_TRUE(torch::allclose(y, dense_conv(x, dilated->masked_weight(), 1, 2, 2)));

  ShiftAttentionConv2d grouped(
      ShiftAttentionConvOptions<2>(4, 6, {3, 5}).groups(2).padding(torch::ExpandingArray<2>({0, 1})));
  const std::vector<int64_t> one = {1, 1}, padding = {0, 1};
  const auto expected = torch::conv2d(x, grouped->masked_weight(), torch::Tensor(), one, padding, one, 2);
  EXPECT_TRUE(torch::allclose(grouped->forward(x), expected));
  EXPECT_EQ(grouped->attention.sizes(), at::IntArrayRef({6, 2, 15}));
}

TEST(ShiftAttentionConv, ParametersStartAsTheMethodSays) {
  torch::manual_seed(17);
  ShiftAttentionConv2d layer(ShiftAttentionConvOptions<2>(64, 64, 3).share(3));
  EXPECT_EQ(layer->attention.size(0), 22);  // 64 = 21 groups of 3 and one of 1
  EXPECT_GE(layer->attention.min().item<double>(), 0.0);
  EXPECT_LT(layer->attention.max().item<double>(), 1.0);
  EXPECT_NEAR(layer->attention.mean().item<double>(), 0.5, 0.02);
  const double bound = 1.0 / std::sqrt(64 * 9.0);  // LibTorch's default: U(+-1/sqrt(fan in))
  EXPECT_LE(layer->weight.abs().max().item<double>(), bound);
  EXPECT_GT(layer->weight.abs().max().item<double>(), 0.99 * bound);

  ShiftAttentionConv2d centred(ShiftAttentionConvOptions<2>(16, 16, 3).init(TapInit::kCentre));
  EXPECT_TRUE(centred->attention.select(-1, 4).equal(centred->attention.amax(-1)));
}

TEST(ShiftAttentionConv, RoundModeFollowsTheTemperature) {
  torch::manual_seed(18);
  ShiftAttentionConv2d layer(ShiftAttentionConvOptions<2>(8, 8, 3));
  layer->set_mode(AttentionMode::kRound);
  layer->set_temperature(6.7);
  EXPECT_EQ(layer->mask().sum().item<double>(), 0.0);
  layer->set_temperature(0.001);
  EXPECT_GT(layer->mask().sum().item<double>(), 60.0);
}

TEST(ShiftAttentionConv, RefusesImpossibleOptions) {
  const auto refused = [](const ShiftAttentionConvOptions<2>& options, const std::string& why) {
    expect_error(ErrorKind::kUsage, why, [&] { ShiftAttentionConv2d layer(options); });
  };
  using O = ShiftAttentionConvOptions<2>;
  refused(O(3, 4, 1), "a kernel with more than one position");
  refused(O(3, 4, 3).taps(10), "expected taps in 1..9");
  refused(O(3, 4, 3).taps(0), "expected taps in 1..9");
  refused(O(3, 4, 3).share(5), "expected share in 1..4");
  refused(O(3, 4, 3).groups(2), "groups to divide");
  refused(O(0, 4, 3), "at least 1 input channel");
  refused(O(3, 4, 3).stride(0), "a stride of at least 1");
  ShiftAttentionConv2d layer(O(3, 4, 3));
  expect_error(ErrorKind::kUsage, "a temperature above 0", [&] { layer->set_temperature(0); });
}

}  // namespace
}  // namespace onetap::nn
