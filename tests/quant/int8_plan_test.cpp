#include "onetap/quant/int8_plan.h"

#include "onetap/base/error.h"
#include "onetap/graph/text.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/tap/random_net.h"
#include "tests/quant/random_int8_net.h"
#include "tests/support/support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace onetap;
using namespace onetap::testing;

namespace {

LayerTensors bytes(const Shape& shape, const std::vector<int8_t>& weight, const std::vector<int16_t>& bias, float base,
                   std::vector<uint8_t> steps, int bias_shift = 0) {
  LayerTensors layer;
  layer.weight = Tensor::of(weight, shape);
  if (!bias.empty()) layer.bias = Tensor::of(bias, {static_cast<int64_t>(bias.size())});
  layer.scale.base = base;
  layer.scale.steps = std::move(steps);
  layer.scale.bias_shift = bias_shift;
  return layer;
}

}  // namespace

// floor(x * factor + 1/2) in long double, whose 64 bits hold every product here.
TEST(Requantize, RoundsToTheNearestHalvesUp) {
  Random random(1, Purpose::kTest);
  for (int i = 0; i < 200000; ++i) {
    const Requantize by{static_cast<int32_t>((1u << 30) + random.below(1u << 30)),
                        32 + static_cast<int32_t>(random.below(31))};
    auto x = static_cast<int32_t>(random.below(1u << 31));
    x >>= random.below(31);
    if (random.coin()) x = -x;
    const long double product = static_cast<long double>(x) * by.multiplier;
    const long double expected = std::floor(std::ldexp(product, -by.shift) + 0.5L);
    ASSERT_EQ(requantized(x, by), static_cast<int64_t>(expected)) << x << ' ' << by.multiplier << ' ' << by.shift;
    // As vectors compute it: the upper half, then the rest of the shift.
    const int64_t sum = static_cast<int64_t>(x) * by.multiplier + (int64_t{1} << (by.shift - 1));
    ASSERT_EQ(requantized(x, by), static_cast<int32_t>(sum >> 32) >> (by.shift - 32));
  }
  const Requantize quarter = requantize_by(0.25, "test");  // 2^30 / 2^32
  EXPECT_EQ(quarter, (Requantize{1 << 30, 32}));
  EXPECT_EQ(requantized(2, quarter), 1);    // 0.5, up
  EXPECT_EQ(requantized(-2, quarter), 0);   // -0.5, up
  EXPECT_EQ(requantized(-3, quarter), -1);  // -0.75
  EXPECT_EQ(requantized(std::numeric_limits<int32_t>::min(), quarter), -(1 << 29));
}

TEST(Requantize, FactorsAreKeptToThirtyOneBits) {
  Random random(2, Purpose::kTest);
  for (int i = 0; i < 10000; ++i) {
    const double factor = std::ldexp(0.5 + 0.5 * random.uniform(0, 1), -1 - static_cast<int>(random.below(29)));
    const Requantize by = requantize_by(factor, "test");
    EXPECT_NEAR(std::ldexp(by.multiplier, -by.shift) / factor, 1, 1e-9);
    EXPECT_GE(by.multiplier, 1 << 30);
  }
  const int32_t least = 1 << 30, most = std::numeric_limits<int32_t>::max();
  // What 31 bits round up to the next power of two.
  EXPECT_EQ(requantize_by(std::nextafter(0.25, 0), "test"), (Requantize{least, 32}));
  EXPECT_EQ(requantize_by(std::nextafter(0.5, 0), "test"), (Requantize{most, 32}));  // 2^31 / 2^32 has no room
  EXPECT_EQ(requantize_by(std::ldexp(1, -32), "test"), (Requantize{least, 62}));
  EXPECT_EQ(requantize_by(std::nextafter(std::ldexp(1, -32), 0), "test"), (Requantize{least, 62}));
  EXPECT_EQ(requantize_by(std::ldexp(1 - 1e-6, -32), "test").multiplier, 0);
  EXPECT_EQ(requantize_by(1e-30, "test").multiplier, 0);
  for (const double factor : {0.5, 1.0, 0.0, -0.1, std::nan("")}) {
    expect_error(ErrorKind::kData, "expected a factor between 0 and one half after 'c'",
                 [&] { requantize_by(factor, "c"); });
  }
}

// A convolution, its residual and its ReLU, and a classifier, with all numbers by hand.
TEST(Int8Plan, ComputesAsOnPaper) {
  TapNet net;
  net.graph = parse_network(
      "onetap-net 1\nx = input 1x1x2\na = conv x out=1 bias=1\nr = relu a\nb = conv r out=1 bias=1\ns = add b r\n"
      "f = flatten s\nfc = linear f out=2\noutput fc\n");
  net.value_scales = {{"x", 0.5f}, {"r", 0.25f}, {"s", 1.0f}, {"f", 1.0f}};
  net.layers["a"] = bytes({1, 1, 1, 1}, {100}, {-7}, 0.125f, {16}, 3);  // a weight of 1 is 0.125 / 2
  net.layers["b"] = bytes({1, 1, 1, 1}, {-3}, {4}, 0.5f, {0});
  net.layers["fc"] = bytes({2, 2}, {1, -2, 127, 5}, {10, -20}, 0.25f, {0, 32}, 1);
  const Int8Reference reference(net);
  std::vector<std::vector<int>> values;
  const float image[] = {1.75f, -0.6f};  // 3.5 and -1.2 steps: 4 (halves to even) and -1
  const auto outputs = reference.run(image, [&](int value, const std::vector<std::byte>& of) {
    if (reference.plan().value(value).dtype == DType::kF32) return;
    values.emplace_back();
    for (const std::byte byte : of) {
      const bool is_signed = reference.plan().value(value).dtype == DType::kI8;
      values.back().push_back(is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte));
    }
  });
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[0], (std::vector<int>{4, -1}));
  // a: -7 * 8 + 100 * q = 344 and -156, of 0.5 * 0.0625 = 1/32 each; in steps of 1/4: 43 and -19.5, which the ReLU
  // cuts.
  EXPECT_EQ(values[1], (std::vector<int>{43, 0}));
  // b: 4 - 3 * q = -125 and 4, of 1/8; with the residual of 43 and 0, of 1/4: -39 and 4, which are -4.875 and 0.5.
  EXPECT_EQ(values[2], (std::vector<int>{-5, 1}));
  EXPECT_EQ(values[3], (std::vector<int>{-5, 1}));
  // fc: 20 - 5 - 2 = 13 of 1/4; -40 - 635 + 5 = -670 of 1/16.
  EXPECT_EQ(outputs, (std::vector<float>{13 / 4.0f, -670 / 16.0f}));
}

TEST(Int8Plan, ScalesLieOnAGridOfSixteenthsOfAnOctave) {
  WeightScale scale;
  scale.base = 0.75f;
  for (int step = 0; step < 256; ++step) scale.steps.push_back(static_cast<uint8_t>(step));
  for (int step = 0; step < 256; ++step) EXPECT_NEAR(scale.of(step) / (0.75 * std::exp2(-step / 16.0)), 1, 1e-15);
}

TEST(Int8Plan, UnsignedBehindReluSignedElsewhereFloatsAtTheEnd) {
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 3x8x8\na = conv x out=4\nr = relu a\nm = maxpool r kernel=2 stride=2\nb = conv m out=4\n"
      "c = concat m b\ns = subsample r out=8 stride=2\nt = add s c\nu = relu t\np = gap u\nfc = linear p out=2\n"
      "output fc\n");
  const ExecutionPlan plan = plan_execution(graph);
  const std::vector<DType> types = int8_types(plan);
  const std::map<std::string, DType> expected = {{"x", DType::kI8}, {"r", DType::kU8}, {"m", DType::kU8},
                                                 {"b", DType::kI8}, {"c", DType::kI8}, {"s", DType::kU8},
                                                 {"u", DType::kU8}, {"p", DType::kU8}, {"fc", DType::kF32}};
  ASSERT_EQ(types.size(), expected.size());
  for (size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(types[i], expected.at(plan.values[i].node->name)) << plan.values[i].node->name;
  }
}

TEST(Int8Plan, RefusesWhatDoesNotFit) {
  const TapNet good = [] {
    TapNet net;
    net.graph = parse_network(
        "onetap-net 1\nx = input 1x2x2\na = conv x out=1\nr = relu a\nm = maxpool r kernel=2\nfc = conv m out=1\n"
        "output fc\n");
    net.value_scales = {{"x", 1.0f}, {"r", 1.0f}, {"m", 1.0f}};
    net.layers["a"] = bytes({1, 1, 1, 1}, {100}, {}, 0.01f, {0});
    net.layers["fc"] = bytes({1, 1, 1, 1}, {100}, {}, 0.01f, {0});
    return net;
  }();
  plan_int8(good);
  const auto refused = [&](const char* message, const std::function<void(TapNet&)>& damage) {
    TapNet net = good;
    damage(net);
    expect_error(ErrorKind::kData, message, [&] { plan_int8(net); });
  };
  refused("expected a scale of the value of 'r'", [](TapNet& net) { net.value_scales.erase("r"); });
  refused("expected scales of the 3 values that steps keep in bytes, got one of 'fc' too",
          [](TapNet& net) { net.value_scales["fc"] = 1; });
  refused("expected a positive scale, got 0", [](TapNet& net) { net.value_scales["x"] = 0; });
  refused("expected a positive scale, got inf", [](TapNet& net) { net.value_scales["x"] = INFINITY; });
  refused("expected a positive scale, got nan", [](TapNet& net) { net.value_scales["x"] = NAN; });
  refused("expected 'm' to keep the scale 1", [](TapNet& net) { net.value_scales["m"] = 2; });
  refused("expected a factor between 0 and one half after 'a'", [](TapNet& net) { net.value_scales["x"] = 1e10f; });
  refused("expected a finer scale of 'a' or a coarser one behind it, got sums of 3.5566e+07 and a factor of 100",
          [](TapNet& net) {
            net.value_scales["x"] = 1e4f;
            net.layers["a"].bias = Tensor::of<int16_t>({2170}, {1});
            net.layers["a"].scale.bias_shift = 14;
          });
  refused("expected a positive scale of weights", [](TapNet& net) { net.layers["a"].scale.base = -1; });
  refused("and 1 steps, got 0.01, 0 and 2", [](TapNet& net) { net.layers["a"].scale.steps = {1, 2}; });
  refused("expected weights of type I8", [](TapNet& net) {
    net.layers["a"].weight = Tensor(DType::kI16, {1, 1, 1, 1});
  });
}

// 70,000 weights of 127 on bytes of 255 pass 32 bits.
TEST(Int8Plan, SumsOf32BitsAreRefusedBeforeTheyAreAddedUp) {
  TapNet net;
  net.graph = parse_network(
      "onetap-net 1\nx = input 70000x1x1\nr = relu x\nf = flatten r\nfc = linear f out=1 bias=0\noutput fc\n");
  net.value_scales = {{"x", 1.0f}, {"r", 1.0f}, {"f", 1.0f}};
  net.layers["fc"] = bytes({1, 70000}, std::vector<int8_t>(70000, 127), {}, 0.01f, {0});
  expect_error(ErrorKind::kData, "expected sums of at most 32 bits, got 2.26695e+09 ('fc')", [&] { plan_int8(net); });
}

// Of the networks that properties are tested with.
TEST(Int8Plan, RandomNetworksHaveResidualsAndConcatenationsOfBothTypes) {
  int residuals = 0, mixed = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Graph graph = random_net(seed).graph;
    const ExecutionPlan plan = plan_execution(graph);
    const std::vector<DType> types = int8_types(plan);
    for (const PlannedStep& step : plan.steps) {
      residuals += step.residual >= 0 ? 1 : 0;
      if (step.node->op != Op::kConcat) continue;
      const auto is_signed = [&](int v) { return types[static_cast<size_t>(v)] == DType::kI8; };
      mixed += is_signed(step.inputs[0]) != is_signed(step.inputs[1]) ? 1 : 0;
    }
  }
  EXPECT_GE(residuals, 5);
  EXPECT_GE(mixed, 2);
}
