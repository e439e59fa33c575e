#include "onetap/nn/channel_shift.h"

#include "onetap/graph/op.h"
#include "onetap/graph/text.h"
#include "onetap/nn/active_shift.h"
#include "onetap/nn/graph_module.h"
#include "onetap/nn/parameter_rule.h"
#include "tests/nn/gradients.h"
#include "tests/support/support.h"

#include <cmath>

namespace onetap::nn {
namespace {

using ::onetap::testing::check_gradient;

enum class Order { kChannelsFirst, kChannelsLast };

torch::Tensor in_order(const torch::Tensor& x, Order order) {
  return order == Order::kChannelsLast ? x.contiguous(torch::MemoryFormat::ChannelsLast) : x;
}

double pixel(const torch::Tensor& image, int64_t n, int64_t c, int64_t h, int64_t w) {
  if (h < 0 || w < 0 || h >= image.size(2) || w >= image.size(3)) return 0;
  return image[n][c][h][w].item<double>();
}

GraphModule shift_module(const std::string& attributes, int64_t channels, int64_t height, int64_t width) {
  return GraphModule(parse_network("onetap-net 1\nx = input " + std::to_string(channels) + "x" +
                                   std::to_string(height) + "x" + std::to_string(width) + "\ns = shift x " +
                                   attributes + "\n"));
}

// Wu et al.: channel c reads (c div k mod k, c mod k) less the centre; what does not fill a round of k^2 stays.
TEST(FixedShift, MovesChannelsByTheTableOfWu) {
  torch::manual_seed(9);
  for (const int64_t k : {3, 5}) {
    const int64_t channels = 2 * k * k + 2;
    auto module = shift_module("kernel=" + std::to_string(k), channels, 4, 6);
    for (const Order order : {Order::kChannelsFirst, Order::kChannelsLast}) {
      const auto x = in_order(torch::randn({2, channels, 4, 6}), order);
      const auto y = module->forward(x);
      EXPECT_EQ(lies_channels_last(y), order == Order::kChannelsLast);
      for (int64_t c = 0; c < channels; ++c) {
        const bool stays = c >= 2 * k * k;
        const int64_t dy = stays ? 0 : c / k % k - k / 2, dx = stays ? 0 : c % k - k / 2;
        for (int64_t h = 0; h < 4; ++h) {
          for (int64_t w = 0; w < 6; ++w) {
            ASSERT_EQ(y[1][c][h][w].item<double>(), pixel(x, 1, c, h + dy, w + dx)) << k << " " << c;
          }
        }
      }
    }
  }
}

TEST(FixedShift, FollowsCountsAndDilation) {
  torch::manual_seed(10);
  // Two channels read the upper left corner, one the middle of the right side, two pixels away each.
  auto module = shift_module("kernel=3 dilation=2 counts=2,0,0,0,0,1,0,0,0", 3, 5, 5);
  const auto x = torch::randn({1, 3, 5, 5});
  const auto y = module->forward(x);
  for (int64_t h = 0; h < 5; ++h) {
    for (int64_t w = 0; w < 5; ++w) {
      EXPECT_EQ(y[0][0][h][w].item<double>(), pixel(x, 0, 0, h - 2, w - 2));
      EXPECT_EQ(y[0][1][h][w].item<double>(), pixel(x, 0, 1, h - 2, w - 2));
      EXPECT_EQ(y[0][2][h][w].item<double>(), pixel(x, 0, 2, h, w + 2));
    }
  }
}

TEST(FixedShift, GradientsAreThoseOfFiniteDifferences) {
  torch::manual_seed(11);
  auto module = shift_module("kernel=3", 9, 3, 4);
  for (const Order order : {Order::kChannelsFirst, Order::kChannelsLast}) {
    auto x = torch::randn({2, 9, 3, 4}, torch::kFloat64).requires_grad_();
    const auto scale = torch::randn({2, 9, 3, 4}, torch::kFloat64);
    check_gradient([&] { return (module->forward(in_order(x, order)) * scale).sum(); }, x, "x");
  }
  EXPECT_TRUE(nn::GraphModule(module)->parameters().empty());
  EXPECT_TRUE(module->buffers().empty());  // nothing that a checkpoint would have to hold
}

// The definition in plain loops: bilinear between the four pixels around (h * s + rows, w * s + columns).
torch::Tensor active_shift_by_loops(const torch::Tensor& x, const torch::Tensor& weight, int64_t stride) {
  const int64_t rows = (x.size(2) - 1) / stride + 1, columns = (x.size(3) - 1) / stride + 1;
  auto y = torch::zeros({x.size(0), x.size(1), rows, columns}, torch::kFloat64);
  for (int64_t n = 0; n < x.size(0); ++n) {
    for (int64_t c = 0; c < x.size(1); ++c) {
      const double b = weight[c][0].item<double>(), a = weight[c][1].item<double>();
      for (int64_t h = 0; h < rows; ++h) {
        for (int64_t w = 0; w < columns; ++w) {
          const double at_h = static_cast<double>(h * stride) + b, at_w = static_cast<double>(w * stride) + a;
          const double top = std::floor(at_h), left = std::floor(at_w);
          double sum = 0;
          for (const int i : {0, 1}) {
            for (const int j : {0, 1}) {
              const double share =
                  (i == 0 ? 1 - (at_h - top) : at_h - top) * (j == 0 ? 1 - (at_w - left) : at_w - left);
              sum += share * pixel(x, n, c, static_cast<int64_t>(top) + i, static_cast<int64_t>(left) + j);
            }
          }
          y[n][c][h][w] = sum;
        }
      }
    }
  }
  return y;
}

// Between pixels, on them, at the borders and far outside.
torch::Tensor many_shifts() {
  return torch::tensor(
      {{0.3, -0.6}, {-1.25, 2.5}, {0.0, 0.0}, {1.0, -2.0}, {-4.5, 0.5}, {6.2, 0.1}, {0.4, 1e9}, {-1e12, 3.0}},
      torch::kFloat64);
}

TEST(ActiveShift, EqualsThePlainLoops) {
  torch::manual_seed(12);
  const auto weight = many_shifts();
  for (const int64_t stride : {1, 2, 3}) {
    for (const auto& size : {std::vector<int64_t>{5, 6}, {4, 7}, {1, 1}}) {
      for (const Order order : {Order::kChannelsFirst, Order::kChannelsLast}) {
        const auto x = in_order(torch::randn({2, 8, size[0], size[1]}, torch::kFloat64), order);
        const auto y = active_shift(x, weight, {stride, stride});
        const auto expected = active_shift_by_loops(x, weight, stride);
        ASSERT_EQ(y.sizes(), expected.sizes());
        EXPECT_TRUE(torch::allclose(y, expected, 1e-12, 1e-12)) << stride << " " << size;
      }
    }
  }
}

TEST(ActiveShift, GradientsAreThoseOfFiniteDifferences) {
  torch::manual_seed(13);
  // Away from whole numbers, where the slope jumps; the last one is outside of the image.
  auto weight = torch::tensor({{0.3, -0.6}, {-1.25, 1.5}, {2.4, 0.7}, {-9.5, 0.5}}, torch::kFloat64).requires_grad_();
  for (const int64_t stride : {1, 2}) {
    for (const Order order : {Order::kChannelsFirst, Order::kChannelsLast}) {
      auto x = torch::randn({2, 4, 5, 4}, torch::kFloat64).requires_grad_();
      const auto scale = torch::randn({2, 4, (5 - 1) / stride + 1, (4 - 1) / stride + 1}, torch::kFloat64);
      const auto loss = [&] { return (active_shift(in_order(x, order), weight, {stride, stride}) * scale).sum(); };
      check_gradient(loss, x, "x");
      check_gradient(loss, weight, "weight");
      EXPECT_EQ(torch::autograd::grad({loss()}, {weight})[0][3].abs().sum().item<double>(), 0);
    }
  }
}

// On whole numbers the slope is that to the right and down, as the authors' code has it: floor and floor + 1.
TEST(ActiveShift, SlopeOnWholeNumbers) {
  auto weight = torch::tensor({{0.0, 0.0}}, torch::kFloat64).requires_grad_();
  const auto x = torch::tensor({1.0, 4.0, 9.0, 25.0}, torch::kFloat64).view({1, 1, 2, 2});
  const auto y = active_shift(x, weight, {2, 2});  // the upper left pixel alone
  y.sum().backward();
  EXPECT_TRUE(weight.grad().equal(torch::tensor({{9.0 - 1.0, 4.0 - 1.0}}, torch::kFloat64)));
}

TEST(ActiveShift, WhatIsNoNumberShowsAndHarmsNothingElse) {
  const double nan = std::nan("");
  const auto y = active_shift(torch::ones({1, 2, 3, 3}), torch::tensor({{nan, 0.0}, {0.0, 0.0}}), {1, 1});
  EXPECT_TRUE(y[0][0].isnan().all().item<bool>());
  EXPECT_TRUE(y[0][1].eq(1).all().item<bool>());
}

TEST(ActiveShift, BrainFloatsAreSummedInFull) {
  torch::manual_seed(14);
  const auto x = torch::randn({2, 8, 6, 6}).to(torch::kBFloat16);
  const auto weight = many_shifts().to(torch::kFloat32);
  const auto y = active_shift(x, weight, {1, 1});
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  const auto exact = active_shift(x.to(torch::kFloat32), weight, {1, 1});
  EXPECT_TRUE(y.equal(exact.to(torch::kBFloat16)));
}

TEST(ActiveShift, IsALayerOfANetwork) {
  torch::manual_seed(15);
  GraphModule module(
      parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=200 kernel=1\na = activeshift c stride=2\n"
                    "d = conv a out=4 kernel=1\np = gap d\nfc = linear p out=2\n"));
  const auto weight = module->named_parameters()["a.weight"];
  EXPECT_EQ(weight.sizes(), at::IntArrayRef({200, 2}));
  EXPECT_LT(weight.abs().max().item<double>(), 1);
  EXPECT_GT(weight.max().item<double>(), 0.9);  // of 400 uniform draws in [-1, 1)
  EXPECT_LT(weight.min().item<double>(), -0.9);
  module->forward(torch::randn({2, 3, 8, 8})).square().sum().backward();
  EXPECT_GT(weight.grad().abs().sum().item<double>(), 0);
}

TEST(ParameterRule, UnitRowsAreOfLengthOne) {
  const auto unit = unit_rows(torch::tensor({{3.0, -4.0}, {0.0, 0.0}, {0.0, 1e-300}, {1e200, 1e200}}, torch::kFloat64));
  const double half = std::sqrt(0.5);
  EXPECT_TRUE(
      torch::allclose(unit, torch::tensor({{0.6, -0.8}, {0.0, 0.0}, {0.0, 1.0}, {half, half}}, torch::kFloat64)));
}

}  // namespace
}  // namespace onetap::nn
