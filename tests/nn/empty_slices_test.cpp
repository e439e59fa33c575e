#include "onetap/nn/empty_slices.h"

#include "onetap/graph/tap_layout.h"
#include "onetap/graph/text.h"
#include "onetap/nn/graph_module.h"
#include "onetap/nn/shift_attention_conv.h"
#include "tests/nn/gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace onetap::nn {
namespace {

torch::Tensor number(double value) {
  return torch::scalar_tensor(value, torch::kFloat64);
}

// The formula in plain loops.
std::vector<double> gates(const torch::Tensor& keep, int64_t kept, double temperature) {
  const auto flat = keep.flatten();
  std::vector<double> k(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()), sorted = k;
  std::sort(sorted.rbegin(), sorted.rend());
  const double border = (sorted[static_cast<size_t>(kept - 1)] + sorted[static_cast<size_t>(kept)]) / 2;
  double mean = 0, square = 0;
  for (const double value : k) mean += value / static_cast<double>(k.size());
  for (const double value : k) square += (value - mean) * (value - mean);
  const double sd = std::sqrt(square / static_cast<double>(k.size() - 1));
  for (double& value : k) value = 1 / (1 + std::exp(-(value - border) / (sd * temperature)));
  return k;
}

TEST(EmptySlices, GatesFollowTheFormula) {
  torch::manual_seed(1);
  const auto keep = torch::rand({5, 7}, torch::kFloat64);
  for (const double temperature : {6.7, 1.0, 0.1}) {
    for (const int64_t kept : {1, 10, 34}) {
      const auto expected = gates(keep, kept, temperature);
      const auto got = keep_gate(keep, kept, number(temperature)).flatten();
      for (int64_t i = 0; i < got.numel(); ++i) {
        EXPECT_NEAR(got[i].item<double>(), expected[static_cast<size_t>(i)], 1e-12);
      }
      EXPECT_EQ((got > 0.5).sum().item<int64_t>(), kept);
    }
  }
}

TEST(EmptySlices, TheMaskIsWhatTheGatesEndAt) {
  torch::manual_seed(2);
  const auto keep = torch::randn({8, 9}, torch::kFloat64);
  const auto mask = keep_mask(keep, 30);
  EXPECT_EQ(mask.sum().item<double>(), 30);
  EXPECT_TRUE(keep_gate(keep, 30, number(1e-6)).allclose(mask, 0, 1e-12));
  EXPECT_TRUE(keep_gate(keep * 1e-3, 30, number(0.5)).allclose(keep_gate(keep, 30, number(0.5)), 0, 1e-12));
  // Of equals the first stay, and exactly as many as were asked for.
  const auto flat = keep_mask(torch::ones({2, 3}), 4);
  EXPECT_TRUE(flat.equal(torch::tensor({1.0f, 1.0f, 1.0f, 1.0f, 0.0f, 0.0f}).view({2, 3})));
}

TEST(EmptySlices, EqualLogitsGiveHalfGatesAndFiniteGradients) {
  auto keep = torch::ones({3, 4}, torch::kFloat64).requires_grad_();
  const auto gate = keep_gate(keep, 5, number(0.1));
  EXPECT_TRUE(gate.eq(0.5).all().item<bool>());
  EXPECT_TRUE(torch::autograd::grad({gate.sum()}, {keep})[0].isfinite().all().item<bool>());
}

// The border is a constant for the gradient: finite differences of all logits but the two that make it.
TEST(EmptySlices, GradientsAreThoseOfFiniteDifferences) {
  torch::manual_seed(3);
  for (const double temperature : {6.7, 1.0, 0.3}) {
    auto keep = torch::rand({4, 5}, torch::kFloat64).requires_grad_();
    const auto direction = torch::randn({4, 5}, torch::kFloat64);
    constexpr int64_t kKept = 8;
    const auto loss = [&] { return (keep_gate(keep, kKept, number(temperature)) * direction).sum(); };
    const auto gradient = torch::autograd::grad({loss()}, {keep})[0].flatten();
    const torch::NoGradGuard no_grad;
    const auto values = keep.flatten();
    const auto order = values.argsort(/*dim=*/0, /*descending=*/true);
    constexpr double kStep = 1e-6;
    for (int64_t rank = 0; rank < values.numel(); ++rank) {
      if (rank == kKept - 1 || rank == kKept) continue;
      const int64_t i = order[rank].item<int64_t>();
      const double old = values[i].item<double>();
      values[i] = old + kStep;
      const double up = loss().item<double>();
      values[i] = old - kStep;
      const double down = loss().item<double>();
      values[i] = old;
      EXPECT_NEAR(gradient[i].item<double>(), (up - down) / (2 * kStep), 1e-6 * (1 + std::abs(up))) << temperature;
    }
  }
}

ShiftAttentionConv2d layer_of(double density, int64_t taps = 1, int64_t share = 1) {
  torch::manual_seed(4);
  return ShiftAttentionConv2d(ShiftAttentionConvOptions<2>(6, 8, 3).taps(taps).share(share).density(density));
}

// 8 x 6 slices: a density of 0.25 leaves 12 of them; in blocks of 4 outputs 3 of 12 sets.
TEST(EmptySlices, AHardLayerHasTheChosenDensity) {
  for (const int64_t taps : {1, 2}) {
    for (const int64_t share : {1, 4}) {
      ShiftAttentionConv2d layer = layer_of(0.25, taps, share);
      layer->set_mode(AttentionMode::kHard);
      const auto weight = layer->masked_weight();
      EXPECT_EQ(weight.ne(0).sum().item<int64_t>(), 12 * taps);
      EXPECT_EQ(weight.flatten(2).ne(0).any(-1).sum().item<int64_t>(), 12);
      const FrozenConv frozen = layer->freeze();
      EXPECT_EQ(frozen.codes.eq(9).sum().item<int64_t>(), (48 - 12) / share * taps);
      EXPECT_EQ(frozen.weight.ne(0).sum().item<int64_t>(), 12 * taps);
      EXPECT_TRUE(layer->describe()->positions.equal(frozen.codes));
    }
  }
}

// The same positions as before, at any low temperature also while it trains, and no gradient that could move them.
TEST(EmptySlices, ASettledLayerIsTheHardOneForGood) {
  for (const double density : {1.0, 0.25}) {
    for (const int64_t taps : {1, 2}) {
      for (const int64_t share : {1, 4}) {
        ShiftAttentionConv2d layer = layer_of(density, taps, share);
        const auto weight = layer->freeze().weight, codes = layer->freeze().codes;
        EXPECT_EQ(layer->settle().size(), density < 1 ? 2u : 1u);
        EXPECT_TRUE(layer->freeze().codes.equal(codes));
        EXPECT_TRUE(layer->freeze().weight.equal(weight));
        layer->set_temperature(1e-6);
        layer->set_mode(AttentionMode::kHard);
        const auto hard = layer->masked_weight();
        layer->set_mode(AttentionMode::kSoft);
        const auto soft = layer->masked_weight();
        EXPECT_TRUE(soft.allclose(hard, 0, 1e-6)) << density << taps << share;
        (soft * torch::randn({8, 6, 3, 3})).sum().backward();
        EXPECT_LT(layer->attention.grad().abs().max().item<float>(), 1e-12);
        if (density < 1) {
          EXPECT_LT(layer->keep.grad().abs().max().item<float>(), 1e-12);
        }
      }
    }
  }
}

TEST(EmptySlices, SoftWeightsAreAttentionTimesGate) {
  ShiftAttentionConv2d layer = layer_of(0.5), whole = layer_of(1);
  const torch::NoGradGuard no_grad;
  whole->weight.copy_(layer->weight);
  whole->attention.copy_(layer->attention);
  layer->set_temperature(0.7);
  whole->set_temperature(0.7);
  const auto gate = keep_gate(layer->keep, 24, torch::scalar_tensor(0.7)).unsqueeze(-1).unsqueeze(-1);
  EXPECT_TRUE(layer->masked_weight().allclose(whole->masked_weight() * gate, 1e-5, 1e-7));
  // At the end the soft layer is the hard one.
  layer->set_temperature(1e-5);
  const auto soft = layer->masked_weight();
  layer->set_mode(AttentionMode::kHard);
  EXPECT_TRUE(soft.allclose(layer->masked_weight(), 0, 1e-6));
}

// Forward the hard layer, bit for bit; gradients those of the soft one.
TEST(EmptySlices, StraightThrough) {
  ShiftAttentionConv2d soft = layer_of(0.5);
  torch::manual_seed(4);
  ShiftAttentionConv2d straight(ShiftAttentionConvOptions<2>(6, 8, 3).density(0.5).relax(Relax::kStraightThrough));
  const auto direction = torch::randn({8, 6, 3, 3});
  soft->set_temperature(0.7);
  straight->set_temperature(0.7);
  const auto trained = straight->masked_weight();
  straight->set_mode(AttentionMode::kHard);
  EXPECT_TRUE(trained.equal(straight->masked_weight()));
  const auto expected =
      torch::autograd::grad({(soft->masked_weight() * direction).sum()}, {soft->attention, soft->keep});
  const auto got = torch::autograd::grad({(trained * direction).sum()}, {straight->attention, straight->keep});
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].allclose(expected[i], 1e-5, 1e-7)) << i;
}

TEST(EmptySlices, ALayerThatKeepsAllHasNoLogitForIt) {
  EXPECT_EQ(layer_of(1)->parameters().size(), 2u);
  EXPECT_EQ(layer_of(0.999)->parameters().size(), 2u);  // of 48 sets all
  EXPECT_EQ(layer_of(0.5)->parameters().size(), 3u);
}

TEST(EmptySlices, GradientsOfALayer) {
  ShiftAttentionConv2d layer = layer_of(0.5, 1, 2);
  layer->to(torch::kFloat64);
  layer->set_temperature(1.5);
  const auto x = torch::randn({2, 6, 5, 5}, torch::kFloat64);
  const auto direction = torch::randn({2, 8, 5, 5}, torch::kFloat64);
  const auto loss = [&] { return (layer->forward(x) * direction).sum(); };
  testing::check_gradient(loss, layer->weight, "weight");
  testing::check_gradient(loss, layer->attention, "attention");
}

}  // namespace
}  // namespace onetap::nn
