#include "onetap/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onetap::nn {
namespace {

torch::Tensor random_logits(int64_t taps, int64_t groups = 5, int64_t in = 4, int64_t s = 9) {
  return torch::rand({taps, groups, in, s}, torch::kFloat64);
}

// The paper's formula for one slice, in plain loops: N = A / sd(A), P = exp(N/T) / sum exp(N/T).
std::vector<double> soft_slice(const torch::Tensor& slice, double temperature) {
  const auto* a = slice.data_ptr<double>();
  const auto s = static_cast<size_t>(slice.numel());
  double mean = 0, square = 0, sum = 0;
  for (size_t i = 0; i < s; ++i) mean += a[i] / static_cast<double>(s);
  for (size_t i = 0; i < s; ++i) square += (a[i] - mean) * (a[i] - mean);
  const double sd = std::sqrt(square / static_cast<double>(s - 1));
  std::vector<double> p(s);
  for (size_t i = 0; i < s; ++i) sum += p[i] = std::exp(a[i] / sd / temperature);
  for (double& value : p) value /= sum;
  return p;
}

class AttentionAt : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Temperatures, AttentionAt, ::testing::Values(6.7, 1.0, 0.1));

TEST_P(AttentionAt, SoftFollowsTheFormula) {
  torch::manual_seed(1);
  for (const int64_t taps : {1, 2, 3}) {
    const auto logits = random_logits(taps);
    const auto p = soft_attention(logits, GetParam());
    for (int64_t g = 0; g < 5; ++g) {
      for (int64_t c = 0; c < 4; ++c) {
        std::vector<double> expected(9, 0);
        for (int64_t tap = 0; tap < taps; ++tap) {
          const auto one = soft_slice(logits[tap][g][c].contiguous(), GetParam());
          for (size_t i = 0; i < 9; ++i) expected[i] = std::max(expected[i], one[i]);
        }
        for (size_t i = 0; i < 9; ++i) {
          EXPECT_NEAR(p[g][c][static_cast<int64_t>(i)].item<double>(), expected[i], 1e-12);
        }
      }
    }
  }
}

TEST(Attention, NeverMakesDenormals) {
  torch::manual_seed(2);
  const auto logits = torch::rand({1, 64, 64, 9});
  for (const double temperature : {0.1, 0.02, 0.005, 1e-4}) {
    const auto p = soft_attention(logits, temperature);
    EXPECT_GT(p.min().item<double>(), 1e-30) << temperature;
    EXPECT_NEAR(p.sum(-1).max().item<double>(), 1.0, 1e-5);
  }
}

TEST(Attention, HardPutsTheOneAtTheLargestLogit) {
  torch::manual_seed(3);
  const auto logits = random_logits(1);
  const auto mask = hard_mask(logits);
  EXPECT_TRUE(mask.sum(-1).eq(1).all().item<bool>());
  EXPECT_TRUE(mask.argmax(-1).equal(logits[0].argmax(-1)));
  EXPECT_TRUE(hard_positions(logits).squeeze(-1).equal(logits[0].argmax(-1)));
}

TEST(Attention, HardKeepsDistinctPositions) {
  torch::manual_seed(4);
  for (const int64_t taps : {2, 3, 9}) {
    const auto logits = random_logits(taps, 30, 30);
    EXPECT_TRUE(hard_mask(logits).sum(-1).eq(static_cast<double>(taps)).all().item<bool>());
    const auto positions = hard_positions(logits);
    EXPECT_TRUE((positions.narrow(-1, 1, taps - 1) > positions.narrow(-1, 0, taps - 1)).all().item<bool>());
  }
}

TEST(Attention, ACollisionGoesToTheNearestRunnerUp) {
  // Both taps want position 2. Tap 0's second best (5) lies nearer to its maximum than tap 1's (7).
  auto logits = torch::zeros({2, 1, 1, 9}, torch::kFloat64);
  logits[0][0][0][2] = 1.0;
  logits[0][0][0][5] = 0.9;
  logits[1][0][0][2] = 1.0;
  logits[1][0][0][7] = 0.4;
  const auto positions = hard_positions(logits).flatten();
  EXPECT_EQ(positions[0].item<int64_t>(), 2);
  EXPECT_EQ(positions[1].item<int64_t>(), 5);
}

TEST(Attention, TiesGoToTheLowerPosition) {
  EXPECT_EQ(hard_positions(torch::full({1, 1, 1, 9}, 0.5)).item<int64_t>(), 0);
  const auto two = hard_positions(torch::full({2, 1, 1, 9}, 0.5)).flatten();
  EXPECT_EQ(two[0].item<int64_t>(), 0);
  EXPECT_EQ(two[1].item<int64_t>(), 1);
}

TEST(Attention, RoundEmptiesUnsureSlices) {
  auto logits = torch::zeros({1, 2, 1, 9}, torch::kFloat64);
  logits[0][0][0][4] = 1.0;  // N = 3 there: P = e^3 / (e^3 + 8) = 0.715 at T = 1
  logits[0][1][0] = torch::arange(9, torch::kFloat64);
  const auto sure = rounded_mask(logits, 1.0);
  EXPECT_EQ(sure[0][0].sum().item<double>(), 1.0);
  EXPECT_EQ(sure[0][0][4].item<double>(), 1.0);
  EXPECT_EQ(sure[1].sum().item<double>(), 0.0);                    // largest P is 0.31 at T = 1
  EXPECT_EQ(rounded_mask(logits, 6.7).sum().item<double>(), 0.0);  // the collapse at high temperature
  EXPECT_TRUE(rounded_mask(logits, 0.01).equal(hard_mask(logits)));
}

TEST(Attention, EqualLogitsGiveUniformPAndFiniteGradients) {
  for (const int64_t taps : {1, 2}) {
    for (const double level : {0.0, 0.5, 1e-20, 1e10}) {
      auto logits = torch::full({taps, 2, 2, 9}, level, torch::kFloat32).requires_grad_(true);
      const auto p = soft_attention(logits, 0.1);
      EXPECT_NEAR(p.min().item<double>(), 1.0 / 9, 1e-6);
      (p * torch::rand_like(p)).sum().backward();
      EXPECT_TRUE(torch::isfinite(logits.grad()).all().item<bool>());
      EXPECT_LT(logits.grad().abs().max().item<double>(), 100.0);
    }
  }
}

// P is a function of the direction of A alone.
TEST(Attention, IsTheSameForLogitsOfAnyScale) {
  torch::manual_seed(6);
  for (const int64_t taps : {1, 2}) {
    const auto logits = torch::rand({taps, 5, 4, 9}) - 0.3;
    for (const double temperature : {6.7, 0.5, 0.05}) {
      const auto p = soft_attention(logits, temperature);
      for (const int power : {-100, -50, 50, 100}) {
        EXPECT_TRUE(soft_attention(logits * std::ldexp(1.0, power), temperature).equal(p)) << power;
      }
      for (const double scale : {1e-12, 1e-15, 1e-30, 1e30}) {
        const auto other = soft_attention(logits * scale, temperature);
        EXPECT_LT((other - p).abs().max().item<double>(), 2e-5 / temperature) << scale;
        EXPECT_TRUE(hard_positions(logits * scale).equal(hard_positions(logits))) << scale;
      }
    }
  }
  // As wide as floats go: the next power of two above the range is none.
  const auto wide = (torch::rand({1, 5, 4, 9}) - 0.5) * 3;
  EXPECT_LT((soft_attention(wide * 1.1e38, 0.5) - soft_attention(wide, 0.5)).abs().max().item<double>(), 4e-5);
  // Denormal numbers: 1, 2, ... times the smallest float there is.
  const auto whole = torch::arange(1, 10, torch::kFloat32).view({1, 1, 1, 9});
  EXPECT_TRUE(soft_attention(whole * std::ldexp(1.0, -149), 1.0).equal(soft_attention(whole, 1.0)));
  // And differences that are the smallest there are beside a large level: N is (0, ..., 0, 3).
  auto level = torch::full({1, 1, 1, 9}, 1000.0f);
  level[0][0][0][4] = std::nextafter(1000.0f, 2000.0f);
  EXPECT_NEAR(soft_attention(level, 1.0).max().item<double>(), std::exp(3.0) / (std::exp(3.0) + 8), 1e-5);
}

TEST(Attention, GradientsAreThoseOfFiniteDifferencesAtAnyScale) {
  torch::manual_seed(7);
  for (const int64_t taps : {1, 2}) {
    for (const double scale : {1.0, 1e-12, 1e-100, 1e100}) {
      const auto start = (torch::rand({taps, 2, 2, 9}, torch::kFloat64) - 0.3) * scale;
      const auto weigh = torch::randn({2, 2, 9}, torch::kFloat64);
      const auto value = [&](const torch::Tensor& a) { return (soft_attention(a, 0.7) * weigh).sum(); };
      const auto logits = start.clone().requires_grad_(true);
      value(logits).backward();
      const auto grad = logits.grad().flatten();
      const double step = 1e-6 * scale, largest = grad.abs().max().item<double>();
      for (int64_t i = 0; i < start.numel(); ++i) {
        const auto moved = [&](double by) {
          auto a = start.clone();
          a.flatten()[i] += by;
          return value(a).item<double>();
        };
        EXPECT_NEAR(grad[i].item<double>(), (moved(step) - moved(-step)) / (2 * step), 1e-5 * largest) << scale;
      }
    }
  }
}

TEST(Attention, NotANumberStaysOneInItsSlice) {
  for (const int64_t taps : {1, 2}) {
    auto logits = torch::rand({taps, 2, 2, 9});
    logits[0][1][0][3] = std::nanf("");
    const auto p = soft_attention(logits, 0.5);
    EXPECT_TRUE(p[1][0].isnan().all().item<bool>());
    EXPECT_EQ(p.isnan().sum().item<int64_t>(), 9);
  }
}

TEST(Attention, ReadsATemperatureThatIsATensor) {
  const auto logits = torch::rand({2, 3, 4, 9});
  const auto p = soft_attention(logits, torch::tensor({0.1f, 0.5f}).select(0, 1));
  EXPECT_EQ(p.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(p.equal(soft_attention(logits, 0.5)));
}

TEST(Attention, LogitsFromMagnitudesPutTheirTapsAtTheLargestWeights) {
  TapLayout layout;
  layout.outputs = 2;
  layout.inputs = 1;
  layout.positions = 4;
  layout.taps = 2;
  layout.share_outputs = 2;
  // Sums of |w|: 4, 1, 2, 0, of a mean of 7/4; as parts of the largest 1, 1/4, 1/2, 0, of a mean of 7/16.
  const auto weight = torch::tensor({1.0, -1.0, 2.0, 0.0, -3.0, 0.0, 0.0, 0.0}).view({2, 1, 2, 2});
  const auto logits = magnitude_logits(weight, layout);
  const auto expected = torch::tensor({1.0, 0.25, 0.4375, 0.0, 0.4375, 0.25, 0.5, 0.0}).view({2, 1, 1, 4});
  EXPECT_TRUE(torch::allclose(logits, expected));
  EXPECT_TRUE(hard_positions(logits).equal(torch::tensor({0, 2}).view({1, 1, 2})));
  EXPECT_TRUE(magnitude_logits(torch::zeros({2, 1, 2, 2}), layout).equal(torch::zeros({2, 1, 1, 4})));
}

TEST(Attention, ExpandingGivesEverySliceItsSet) {
  TapLayout layout;
  layout.outputs = 10;
  layout.inputs = 7;
  for (const auto& [share_outputs, share_inputs] : {std::pair{1, 1}, {4, 1}, {1, 3}, {4, 4}, {10, 7}}) {
    layout.share_outputs = share_outputs;
    layout.share_inputs = share_inputs;
    const auto sets = torch::arange(layout.sets()).view({layout.output_blocks(), layout.input_blocks(), 1});
    const auto expanded = expand_sets(sets, layout);
    ASSERT_EQ(expanded.sizes(), torch::IntArrayRef({10, 7, 1}));
    for (int64_t d = 0; d < 10; ++d) {
      for (int64_t c = 0; c < 7; ++c)
        EXPECT_EQ(expanded[d][c][0].item<int64_t>(), layout.set_of(d, c)) << d << ' ' << c;
    }
  }
}

}  // namespace
}  // namespace onetap::nn
