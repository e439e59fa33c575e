#include "onetap/tap/int8_file.h"

#include "onetap/base/error.h"
#include "onetap/graph/text.h"
#include "onetap/tap/random_net.h"
#include "onetap/tap/tap_file.h"
#include "tests/support/support.h"
#include "tests/tap/tampered.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

using namespace onetap;
using namespace onetap::testing;

namespace {

LayerTensors bytes_of(const LayerTensors& floats) {
  LayerTensors layer;
  layer.positions = floats.positions;
  layer.weight = Tensor(DType::kI8, floats.weight.shape());
  for (size_t i = 0; i < layer.weight.count(); ++i) {
    const float weight = floats.weight.data<float>()[i];
    layer.weight.data<int8_t>()[i] = static_cast<int8_t>(weight == 0 ? 0 : static_cast<int>(i % 255) - 127);
  }
  if (!floats.bias.empty()) {
    layer.bias = Tensor(DType::kI16, floats.bias.shape());
    for (size_t i = 0; i < layer.bias.count(); ++i)
      layer.bias.data<int16_t>()[i] = static_cast<int16_t>(-300 * static_cast<int>(i));
  }
  layer.scale.base = 0.1f;
  for (int64_t d = 0; d < layer.weight.shape()[0]; ++d) layer.scale.steps.push_back(static_cast<uint8_t>(d * 50));
  layer.scale.bias_shift = 7;
  return layer;
}

// A dense layer, one with taps and a layer of which some are dropped, all in bytes, and a classifier in floats.
TapNet int8_net(bool keep_classifier = true) {
  TapNet net = random_tap_net(
      parse_network(
          "onetap-net 1\nx = input 2x4x4\na = conv x out=3 kernel=3 pad=1 bias=1\nr = relu a\n"
          "c = tapconv r out=4 kernel=3 pad=1 taps=2 share=2\nd = tapconv c out=4 kernel=3 pad=1 taps=1 share=1 "
          "dropped=3\ng = gap d\nf = linear g out=2\n"),
      5);
  for (const char* name : {"a", "c", "d"}) net.layers[name] = bytes_of(net.layers[name]);
  if (!keep_classifier) net.layers["f"] = bytes_of(net.layers["f"]);
  net.value_scales = {{"x", 0.01f}, {"r", 0.02f}, {"c", 0.03f}, {"d", 0.04f}, {"g", 0.05f}};
  return net;
}

}  // namespace

TEST(Int8File, StoredBytesAreThoseOfTheTensors) {
  for (const bool keep : {true, false}) {
    const TapNet net = int8_net(keep);
    const std::string file = tap_bytes(net);
    uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof(header));
    const std::vector<uint64_t> bytes = stored_bytes(net);
    ASSERT_EQ(bytes.size(), net.graph.nodes().size());
    EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}), file.size() - sizeof(header) - header);
    // x has a scale; a has 54 weights, 3 biases of 16 bits, 3 steps, base and shift beside it.
    EXPECT_EQ(bytes[0], 4u);
    EXPECT_EQ(bytes[1], 4u + 54 + 6 + 3 + 4 + 1);
  }
}

TEST(Int8File, ComesBackAsItWas) {
  for (const bool keep : {true, false}) {
    const TapNet net = int8_net(keep);
    const TapNet back = parse_tap(tap_bytes(net), "test");
    EXPECT_TRUE(back.is_int8());
    EXPECT_TRUE(back.graph == net.graph);
    EXPECT_EQ(back.value_scales, net.value_scales);
    ASSERT_EQ(back.layers.size(), net.layers.size());
    for (const auto& [name, layer] : net.layers) EXPECT_TRUE(back.layers.at(name) == layer) << name;
    EXPECT_STREQ(weight_type_name(back), "int8");
  }
}

TEST(Int8File, HasOneByteAWeightThreeAnOutputAndTheTextOfTheNetwork) {
  const SafetensorsFile file = SafetensorsFile::parse(tap_bytes(int8_net(false)), "test");
  EXPECT_EQ(file.metadata().at("version"), "4");
  EXPECT_EQ(file.metadata().count("graph"), 0u);
  EXPECT_TRUE(parse_network(file.metadata().at("network")) == int8_net().graph);
  std::map<std::string, int64_t> sizes;
  for (const TensorView& view : file.tensors()) sizes[view.name] = view.shape.at(0);
  const int64_t dropped = 16 - file.find("int8/weight")->shape[0] + 54 + 24 + 8;
  EXPECT_GE(dropped, 0);
  const std::map<std::string, int64_t> expected = {
      {"int8/weight", 54 + 24 + 16 - dropped + 8},  // 3x2x9, 4x3x2, 4x4 without the dropped, 2x4
      {"int8/bias", 3 + 2},
      {"int8/positions", 6 + 8},  // 12 codes of 4 bits, 16 codes of 4 bits
      {"int8/step", 3 + 4 + 4 + 2},
      {"int8/base", 4},
      {"int8/bias_shift", 4},
      {"int8/value", 7}};
  EXPECT_EQ(sizes, expected);
}

TEST(Int8File, RefusesFilesThatLie) {
  const auto refused = [](const char* part, const std::function<void(Tampered&)>& damage) {
    Tampered file(int8_net());
    damage(file);
    expect_error(ErrorKind::kData, part, [&] { parse_tap(file.bytes(), "bad.tap"); });
  };
  parse_tap(Tampered(int8_net()).bytes(), "good.tap");
  Tampered nameless(int8_net());
  nameless.metadata.erase("network");
  try {
    parse_tap(nameless.bytes(), "bad.tap");
    ADD_FAILURE() << "it was read";
  } catch (const Error& problem) {
    EXPECT_STREQ(problem.what(), "[tap] expected 'network' in the metadata, got none (bad.tap)");  // once
  }
  refused("expected version 4 of a file with int8 tensors, got '3'", [](Tampered& f) { f.metadata["version"] = "3"; });
  refused("expected 'network' in the metadata", [](Tampered& f) { f.metadata.erase("network"); });
  refused("expected a tensor 'int8/value', got none (bad.tap)",
          [](Tampered& f) { f.tensor("int8/value").name = "int8/other"; });
  refused("expected 'graph' or 'network' in the metadata, got both (bad.tap)",
          [](Tampered& f) { f.metadata["graph"] = "[]"; });
  refused("line 1: expected 'onetap-net 1'", [](Tampered& f) { f.metadata["network"] = "{}"; });
  refused("expected F32 [7] for 'int8/value', got F32 [1]", [](Tampered& f) { f.tensor("int8/value").shape = {1}; });
  refused("expected I8 [", [](Tampered& f) { f.tensor("int8/weight").dtype = DType::kU8; });
  refused("expected a tensor 'int8/step', got none", [](Tampered& f) { f.tensor("int8/step").name = "int8/stop"; });
  refused("expected 9 tensors, got 10", [](Tampered& f) {
    f.tensors.push_back(f.tensor("int8/step"));
    f.tensors.back().name = "more";
  });
  refused("expected a finite scale above 0, got nan (r)", [](Tampered& f) { f.set("int8/value", 2, std::nanf("")); });
  refused("expected a finite scale above 0, got -1 (x)", [](Tampered& f) { f.set("int8/value", 0, -1.0f); });
  refused("expected a finite scale of weights above 0, got inf (a)",
          [](Tampered& f) { f.set("int8/base", 0, INFINITY); });
  refused("expected a finite scale of weights above 0, got 0 (c)", [](Tampered& f) { f.set("int8/base", 1, 0.0f); });
  refused("expected a shift of the bias of 0 to 15, got 16 (a)",
          [](Tampered& f) { f.set("int8/bias_shift", 0, uint8_t{16}); });
  refused("expected weights of -127 to 127, got -128 (a)", [](Tampered& f) { f.set("int8/weight", 5, int8_t{-128}); });
  refused("(c)", [](Tampered& f) { f.set("int8/positions", 0, uint8_t{0xff}); });
  refused("expected scales of values, got none", [](Tampered& f) {
    for (size_t i = 0; i < 7; ++i) f.set("int8/value", i, 0.0f);
  });
}
