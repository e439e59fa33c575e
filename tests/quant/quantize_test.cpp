#include "onetap/quant/quantize.h"

#include "onetap/base/error.h"
#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/share.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/quant/float_net.h"
#include "onetap/quant/int8_graph.h"
#include "onetap/quant/quantize_layer.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/tap_file.h"
#include "tests/quant/random_int8_net.h"
#include "tests/support/support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace onetap;
using namespace onetap::testing;

namespace {

// Root of the mean squared difference, of the root of the mean square.
double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += std::pow(got[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  return size > 0 ? std::sqrt(error / size) : std::sqrt(error);
}

TapNet made(const char* text, uint64_t seed = 1) {
  return random_tap_net(parse_network(text), seed);
}

void fill(LayerTensors& layer, const std::vector<float>& weight, const std::vector<float>& bias = {}) {
  layer.weight = Tensor::of(weight, layer.weight.shape());
  if (!bias.empty()) layer.bias = Tensor::of(bias, layer.bias.shape());
}

}  // namespace

TEST(Quantize, NetworksOfAnyFormStayCloseToTheirFloats) {
  QuantizeOptions options;
  options.method = CalibrationMethod::kMinMax;
  std::vector<double> errors;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const TapNet net = random_net(seed);
    const TapNet bytes = quantize_net(net, random_calibration(net, seed), options);
    const auto image = random_image(net.graph, seed * 100);
    errors.push_back(relative_error(Int8Reference(bytes).run(image.data()), run_reference(net, image.data())));
    EXPECT_LT(errors.back(), 0.2) << "seed " << seed;
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.03);
}

TEST(Quantize, RangesOfTrainingAreTheScales) {
  TapNet net = made(
      "onetap-net 1\nx = input 2x4x4\nc = conv x out=2 kernel=1 bias=1\nr = relu c\nm = maxpool r kernel=2 stride=2\n"
      "p = gap m\nf = linear p out=2\n");
  expect_error(ErrorKind::kData, "expected a network that was trained for int8, got one without ranges",
               [&] { recorded_calibration(net); });
  net.value_ranges = {{"x", 2.0f}, {"r", 5.0f}};
  expect_error(ErrorKind::kData, "expected a range of 'p', got none", [&] { recorded_calibration(net); });
  net.value_ranges["p"] = 1.0f;
  const TapNet bytes = quantize_net(net, recorded_calibration(net));
  // Signed to 127, behind a ReLU to 255; the maximum has the scale of what it reads, the last layer gives floats.
  EXPECT_EQ(bytes.value_scales,
            (std::map<std::string, float>{{"x", 2.0f / 127}, {"r", 5.0f / 255}, {"m", 5.0f / 255}, {"p", 1.0f / 255}}));
  EXPECT_EQ(bytes.facts.at("quantized"), "int8, ranges of training");
  EXPECT_TRUE(bytes.value_ranges.empty());
}

TEST(Quantize, TheLargestWeightOfAnOutputHas121To127Steps) {
  const TapNet net = made("onetap-net 1\nx = input 8x6x6\nc = conv x out=16 kernel=3 pad=1 bias=1\noutput c\n");
  const LayerTensors layer = quantize_layer(net.layers.at("c"), {{0.01f, 127}, {}});
  const auto* floats = net.layers.at("c").weight.data<float>();
  for (int64_t d = 0; d < 16; ++d) {
    int most = 0;
    for (int64_t i = d * 72; i < (d + 1) * 72; ++i) {
      const int q = layer.weight.data<int8_t>()[i];
      most = std::max(most, std::abs(q));
      EXPECT_LE(std::fabs(floats[i] - q * layer.scale.of(d)), layer.scale.of(d) * 0.5001);
    }
    EXPECT_GE(most, 121);
    const double bias = std::ldexp(layer.bias.data<int16_t>()[d], layer.scale.bias_shift) * 0.01f * layer.scale.of(d);
    const double step = std::ldexp(0.01f * layer.scale.of(d), layer.scale.bias_shift);
    EXPECT_NEAR(bias, net.layers.at("c").bias.data<float>()[d], step * 0.5001);
  }
}

// One output has weights a million times smaller than its bias: it must not cost the others their precision.
TEST(Quantize, ABiasThatDwarfsItsWeightsCostsOtherOutputsNothing) {
  TapNet net = made("onetap-net 1\nx = input 4x1x1\nc = conv x out=2 bias=1\noutput c\n");
  fill(net.layers.at("c"), {1, -0.5f, 0.25f, 1, 1e-6f, 0, 0, -1e-6f}, {0.125f, 3});
  const LayerTensors layer = quantize_layer(net.layers.at("c"), {{0.01f, 127}, {}});
  EXPECT_NEAR(std::ldexp(layer.bias.data<int16_t>()[0], layer.scale.bias_shift) * 0.01f * layer.scale.of(0), 0.125,
              1e-3);
  EXPECT_NEAR(std::ldexp(layer.bias.data<int16_t>()[1], layer.scale.bias_shift) * 0.01f * layer.scale.of(1), 3, 1e-3);
  EXPECT_GE(layer.weight.data<int8_t>()[0], 121);
}

TEST(Quantize, DeadLayersAndValuesThatAreAllZeroAreExact) {
  TapNet net = made(
      "onetap-net 1\nx = input 2x4x4\na = conv x out=3 kernel=3 pad=1 bias=1\nr = relu a\nb = conv r out=3 bias=1\n"
      "s = add b r\nt = relu s\np = gap t\nfc = linear p out=2\noutput fc\n");
  fill(net.layers.at("a"), std::vector<float>(54, 0.0f), {-1, 0, -3});  // the ReLU leaves nothing
  fill(net.layers.at("b"), std::vector<float>(9, 0.0f), {0, 0, 0});
  fill(net.layers.at("fc"), {1, 2, 3, 4, 5, 6}, {0.5f, -0.25f});
  const TapNet bytes = quantized(net, 1);
  const auto outputs = Int8Reference(bytes).run(random_image(net.graph, 7).data());
  EXPECT_NEAR(outputs[0], 0.5, 1e-4);
  EXPECT_NEAR(outputs[1], -0.25, 1e-4);
}

// A branch that adds almost nothing to its shortcut, and one that hides it.
TEST(Quantize, ResidualsOfAnySizeFit) {
  const char* text =
      "onetap-net 1\nx = input 4x5x5\na = conv x out=4 bias=1\nr = relu a\nb = conv r out=4 kernel=3 pad=1 bias=1\n"
      "s = add b r\nt = relu s\np = gap t\nfc = linear p out=3\noutput fc\n";
  for (const float factor : {1e-12f, 1e-6f, 1e-3f, 1e3f, 1e6f}) {
    TapNet net = made(text);
    for (Tensor* tensor : {&net.layers.at("b").weight, &net.layers.at("b").bias}) {
      for (size_t i = 0; i < tensor->count(); ++i) tensor->data<float>()[i] *= factor;
    }
    const auto image = random_image(net.graph, 100);
    EXPECT_LT(relative_error(Int8Reference(quantized(net, 1)).run(image.data()), run_reference(net, image.data())),
              0.05)
        << factor;
  }
}

TEST(Quantize, KeptLayersStayFloats) {
  const TapNet net = made(
      "onetap-net 1\nx = input 3x8x8\na = conv x out=8 kernel=3 pad=1 bias=1\nr = relu a\nb = conv r out=8 kernel=3 "
      "pad=1\ns = add b r\nt = relu s\np = gap t\nfc = linear p out=5\noutput fc\n");
  const auto image = random_image(net.graph, 100);
  const auto expected = run_reference(net, image.data());
  QuantizeOptions options;
  options.method = CalibrationMethod::kMinMax;
  const double none = relative_error(Int8Reference(quantized(net, 1, options)).run(image.data()), expected);
  options.kept = {"a", "fc"};
  const TapNet ends = quantized(net, 1, options);
  EXPECT_EQ(ends.layers.at("a").weight, net.layers.at("a").weight);
  EXPECT_EQ(ends.value_scales.count("x"), 0u);  // the first layer reads the image as it is
  EXPECT_EQ(Int8Reference(ends).plan().value(0).dtype, DType::kF32);
  const double less = relative_error(Int8Reference(ends).run(image.data()), expected);
  options.kept = {"a", "b", "fc"};
  const double least = relative_error(Int8Reference(quantized(net, 1, options)).run(image.data()), expected);
  EXPECT_LT(less, none);
  EXPECT_LT(least, 0.02);
}

// As depthwise convolutions, with a ReLU that is fused into them.
TEST(Quantize, ActiveShiftsStayCloseToTheirFloats) {
  const TapNet net = made(
      "onetap-net 1\nx = input 3x9x9\na = conv x out=8 kernel=3 pad=1 bias=1\nb = relu a\nc = activeshift b stride=2\n"
      "d = relu c\ne = conv d out=6 bias=1\np = gap e\nfc = linear p out=5\noutput fc\n");
  const TapNet bytes = quantized(net, 1);
  EXPECT_EQ(bytes.value_scales.count("c"), 0u);
  for (uint64_t seed = 200; seed < 205; ++seed) {
    const auto image = random_image(net.graph, seed);
    EXPECT_LT(relative_error(Int8Reference(bytes).run(image.data()), run_reference(net, image.data())), 0.05) << seed;
  }
}

// A bottleneck as MobileNetV2 has them, with sums far beyond 6.
TEST(Quantize, ReLU6EndsWhereBytesEnd) {
  const std::string text =
      "onetap-net 1\nx = input 3x9x9\na = conv x out=8 kernel=3 stride=2 pad=1 bias=1\nb = relu6 a\nc = conv b out=8 "
      "kernel=3 pad=1 groups=8 bias=1\nd = relu6 c\ne = conv d out=8 bias=1\nf = add e b\ng = maxpool f kernel=2 "
      "stride=2\np = gap g\nfc = linear p out=5\noutput fc\n";
  TapNet net = made(text.c_str());
  for (const char* name : {"a", "c"}) {
    Tensor& weight = net.layers.at(name).weight;
    for (size_t i = 0; i < weight.count(); ++i) weight.data<float>()[i] *= 20;
  }
  const TapNet bytes = quantized(net, 1);
  EXPECT_EQ(bytes.graph.node("b").op, Op::kRelu);
  EXPECT_FLOAT_EQ(bytes.value_scales.at("b"), 6.0f / 255);
  EXPECT_FLOAT_EQ(bytes.value_scales.at("d"), 6.0f / 255);
  EXPECT_EQ(bytes.value_scales.count("a"), 0u);  // fused: the sums of the convolution are never stored
  TapNet unbounded = net;
  unbounded.graph = int8_graph(net.graph);
  for (uint64_t seed = 200; seed < 205; ++seed) {
    const auto image = random_image(net.graph, seed);
    const auto got = Int8Reference(bytes).run(image.data());
    EXPECT_LT(relative_error(got, run_reference(net, image.data())), 0.15) << seed;
    EXPECT_GT(relative_error(got, run_reference(unbounded, image.data())), 0.5) << seed;
  }
  // A concatenation has one scale: that of its largest values.
  TapNet joined = made(
      "onetap-net 1\nx = input 2x4x4\na = conv x out=2 bias=1\nb = relu6 a\nc = conv x out=2 bias=1\nd = relu c\n"
      "e = concat b d\np = gap e\nfc = linear p out=2\noutput fc\n");
  fill(joined.layers.at("a"), {50, 50, 50, 50}, {100, 100});
  fill(joined.layers.at("c"), {1, 1, 1, 1}, {20, 20});
  expect_error(ErrorKind::kData, "expected bytes up to 6 behind a relu6, got up to 2", [&] { quantized(joined, 1); });
}

TEST(Quantize, WhatCannotBeDoneIsAnErrorWithItsKind) {
  const TapNet net = random_net(3);
  expect_error(ErrorKind::kUsage, "expected images to calibrate with", [&] { quantize_net(net, {}); });
  const TapNet bytes = quantized(net, 3);
  expect_error(ErrorKind::kData, "got one of int8", [&] { check_quantizable(bytes); });
  QuantizeOptions options;
  options.kept = {"x"};
  expect_error(ErrorKind::kUsage, "expected a layer with weights to keep, got 'x'",
               [&] { check_quantizable(net, options); });
  options.kept = {"nobody"};
  expect_error(ErrorKind::kUsage, "got no layer 'nobody'", [&] { check_quantizable(net, options); });
  TapNet nan = made("onetap-net 1\nx = input 1x1x1\nc = conv x out=1\noutput c\n");
  fill(nan.layers.at("c"), {std::nanf("")});
  expect_error(ErrorKind::kData, "expected finite numbers in weight", [&] { check_quantizable(nan); });
  const TapNet bent = made("onetap-net 1\nx = input 2x4x4\nf = silu x\noutput f\n");
  expect_error(ErrorKind::kData, "expected an op that has an int8 form, got silu ('f')",
               [&] { check_quantizable(bent); });
}

// A byte for every weight that is kept, the positions, and no more than two percent beside them.
TEST(Quantize, FilesTakeAByteAWeight) {
  NetSpec spec;
  spec.arch = "resnet20";
  spec.width = 80;
  Graph graph = build_network(spec);
  apply_method(graph, sal_method(1, parse_share("4x4").value()), "");
  const TapNet net = random_tap_net(frozen_form(graph).graph, 1);
  Calibration calibration;
  calibration.images = 1;
  calibration.values.resize(plan_execution(net.graph).values.size());
  const float one = 1;
  for (ValueHistogram& value : calibration.values) value.add(&one, 1, "value");
  uint64_t least = 0;
  for (const auto& [name, layer] : net.layers) least += layer.weight.count() + (layer.positions.size() + 1) / 2;
  EXPECT_EQ(least, 811760u + 23200u);  // 4 bits for each of 46,400 positions
  TapNet bytes = quantize_net(net, calibration);
  bytes.classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  bytes.facts["onetap"] = "0.1.0";
  bytes.facts["step"] = "117300";
  bytes.facts["method"] = "sal taps=1 share=4x4";
  const uint64_t length = tap_bytes(bytes).size();
  EXPECT_LE(static_cast<double>(length), 1.02 * static_cast<double>(least)) << length;
  RecordProperty("bytes", static_cast<int>(length));
}

TEST(FloatNet, HasTheNumbersThatBytesStandFor) {
  TapNet net = made("onetap-net 1\nx = input 1x2x2\na = conv x out=2 bias=1\nr = relu a\nb = conv r out=1\noutput b\n");
  fill(net.layers.at("b"), {1, 2});
  net.value_scales = {{"x", 0.5f}, {"r", 2.0f}};
  LayerTensors& a = net.layers.at("a");
  a.weight = Tensor::of<int8_t>({3, -5}, {2, 1, 1, 1});
  a.bias = Tensor::of<int16_t>({7, -9}, {2});
  a.scale.base = 0.25f;
  a.scale.steps = {0, 16};  // one octave less
  a.scale.bias_shift = 2;
  const TapNet floats = float_net(net);
  EXPECT_EQ(floats.layers.at("a").weight, Tensor::of<float>({0.75f, -0.625f}, {2, 1, 1, 1}));
  EXPECT_EQ(floats.layers.at("a").bias, Tensor::of<float>({7 * 4 * 0.125f, -9 * 4 * 0.0625f}, {2}));
  EXPECT_EQ(floats.layers.at("b").weight, net.layers.at("b").weight);  // kept
  EXPECT_FALSE(floats.is_int8());
  TapNet without = net;
  without.value_scales.erase("x");
  expect_error(ErrorKind::kData, "expected a scale of the value of 'x'", [&] { float_net(without); });
  TapNet huge = net;
  huge.value_scales = {{"x", 1e-30f}, {"r", 1e10f}};
  huge.layers.at("a").scale.base = 3e38f;
  expect_error(ErrorKind::kData, "that floats can hold, got 9e+38 ('a')", [&] { float_net(huge); });
}
