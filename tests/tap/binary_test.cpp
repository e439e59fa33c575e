#include "onetap/tap/binary.h"

#include "onetap/base/safetensors.h"
#include "onetap/count/count.h"
#include "onetap/graph/json.h"
#include "onetap/graph/text.h"
#include "onetap/tap/tap_file.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

#include <cstring>
#include <functional>
#include <limits>

namespace onetap {
namespace {

using testing::expect_error;

// By hand: two outputs of five weights, ten bits.
TEST(Binary, SignsArePackedFromTheLowestBit) {
  const Tensor weight = Tensor::of<float>({-2, 2, 2, -2, 2, 0.5f, 0.5f, -0.5f, -0.5f, -0.5f}, {2, 5});
  check_binary(weight, "c");
  const BinaryWeights packed = pack_binary(weight);
  // 1 0 0 1 0 | 0 0 1 1 1: the first byte is 1 + 8 + 128, the second 1 + 2.
  EXPECT_EQ(packed.signs, std::string("\x89\x03", 2));
  EXPECT_EQ(packed.scales, (std::vector<float>{2, 0.5f}));
  EXPECT_TRUE(unpack_binary(packed.signs, Tensor::of<float>({2, 0.5f}, {2}), {2, 5}, "c") == weight);
  expect_error(ErrorKind::kData, "zero bits after the last", [] {
    unpack_binary("\x89\x07", Tensor::of<float>({2, 1}, {2}), {2, 5}, "c");
  });
  expect_error(ErrorKind::kData, "scales of at least 0, got -1 (c)", [] {
    unpack_binary("\x89\x03", Tensor::of<float>({2, -1}, {2}), {2, 5}, "c");
  });
}

TEST(Binary, EveryOutputHasOneMagnitude) {
  expect_error(ErrorKind::kData, "one magnitude in output 1, got 1 and 2 (layer.conv)", [] {
    check_binary(Tensor::of<float>({3, -3, 1, 2}, {2, 2}), "layer.conv");
  });
  expect_error(ErrorKind::kData, "type F32, got I8 (c)", [] {
    check_binary(Tensor::of<int8_t>({1, -1}, {1, 2}), "c");
  });
  EXPECT_NO_THROW(check_binary(Tensor::of<float>({0.0f, -0.0f}, {1, 2}), "c"));
}

Graph binary_graph() {
  return parse_network(
      "onetap-net 1\nx = input 3x6x6\na = conv x out=5 kernel=3 pad=1 bias=1 method=binary\n"
      "s = shift a kernel=3\nm = activeshift s stride=2\nb = conv m out=4 groups=1 method=binary\ng = gap b\n"
      "f = linear g out=2 method=binary\n");
}

TEST(Binary, FilesRoundTripInBothTypes) {
  TapNet net = random_tap_net(binary_graph(), 7);
  EXPECT_TRUE(parse_tap(tap_bytes(net), "test").layers == net.layers);
  EXPECT_TRUE(parse_tap(tap_bytes(net), "test").graph == net.graph);
  // With 16 bits the scales are rounded; the places of the active shift are not.
  net.weight_type = WeightType::kF16;
  const TapNet rounded = parse_tap(tap_bytes(net), "test");
  EXPECT_EQ(rounded.weight_type, WeightType::kF16);
  EXPECT_TRUE(rounded.layers.at("m") == net.layers.at("m"));
  EXPECT_FALSE(rounded.layers.at("a") == net.layers.at("a"));
  EXPECT_EQ(tap_bytes(rounded), tap_bytes(net));
  EXPECT_EQ(tap_length(net.graph, WeightType::kF16), tap_bytes(net).size());
}

TEST(Binary, AWeightTakesABit) {
  const std::string bytes = tap_bytes(random_tap_net(binary_graph(), 7));
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "test");
  EXPECT_EQ(file.find("a.weight"), nullptr);
  EXPECT_EQ(file.find("a.signs")->dtype, DType::kU8);
  EXPECT_EQ(file.find("a.signs")->shape, (Shape{17}));  // 5 * 3 * 9 = 135 bits
  EXPECT_EQ(file.find("a.scale")->dtype, DType::kF32);
  EXPECT_EQ(file.find("a.scale")->shape, (Shape{5}));
  EXPECT_EQ(file.find("f.signs")->shape, (Shape{1}));  // 8 bits
  EXPECT_EQ(file.find("m.weight")->shape, (Shape{5, 2}));
  EXPECT_EQ(tap_length(binary_graph(), WeightType::kF32), bytes.size());
  EXPECT_EQ(file.metadata().at("version"), "2");
}

// Readers of version 1 read what has nothing new, whoever wrote it.
TEST(Binary, AFileSaysTheOldestVersionThatHasAllOfIt) {
  const auto version = [](const std::string& nodes) {
    const TapNet net = random_tap_net(parse_network("onetap-net 1\nx = input 3x6x6\n" + nodes), 1);
    return SafetensorsFile::parse(tap_bytes(net), "test").metadata().at("version");
  };
  EXPECT_EQ(version("a = tapconv x out=2 kernel=3\n"), "1");
  EXPECT_EQ(version("a = conv x out=2\n"), "1");
  EXPECT_EQ(version("a = conv x out=2 method=binary\n"), "2");
  EXPECT_EQ(version("a = shift x kernel=3\n"), "2");
  EXPECT_EQ(version("a = activeshift x\n"), "2");
  EXPECT_EQ(version("a = tapconv x out=2 kernel=1\n"), "2");
}

// One position, no bits: such a file has a tensor of no bytes.
TEST(Binary, ATapConvolutionMayHaveOnePosition) {
  const TapNet net = random_tap_net(parse_network("onetap-net 1\nx = input 3x6x6\na = tapconv x out=2 kernel=1\n"), 1);
  EXPECT_TRUE(parse_tap(tap_bytes(net), "test").layers == net.layers);
}

// One change to a good file at a time.
TEST(Binary, FilesThatLieAreRefused) {
  const auto refused = [](const char* part, const std::function<void(std::vector<TensorView>&, Metadata&)>& damage) {
    const SafetensorsFile file = SafetensorsFile::parse(tap_bytes(random_tap_net(binary_graph(), 7)), "good");
    std::vector<TensorView> tensors = file.tensors();
    Metadata metadata = file.metadata();
    damage(tensors, metadata);
    expect_error(ErrorKind::kData, part, [&] { parse_tap(safetensors_bytes(tensors, metadata), "bad.tap"); });
  };
  const auto find = [](std::vector<TensorView>& tensors, const std::string& name) -> TensorView& {
    for (TensorView& view : tensors) {
      if (view.name == name) return view;
    }
    throw std::out_of_range(name);
  };
  const auto replace = [](Metadata& metadata, const std::string& from, const std::string& to) {
    const size_t at = metadata.at("graph").find(from);
    ASSERT_NE(at, std::string::npos);
    metadata.at("graph").replace(at, from.size(), to);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> bad(10, nan), negative(10, -1.0f);
  const std::string ones(64, '\xff');
  refused("scales of at least 0, got nan (a, bad.tap)",
          [&](auto& tensors, auto&) { find(tensors, "a.scale").data = bad.data(); });
  refused("scales of at least 0, got -1 (a, bad.tap)",
          [&](auto& tensors, auto&) { find(tensors, "a.scale").data = negative.data(); });
  refused("zero bits after the last sign (a, bad.tap)",
          [&](auto& tensors, auto&) { find(tensors, "a.signs").data = ones.data(); });
  refused("expected U8 [17] for 'a.signs', got U8 [16]",
          [&](auto& tensors, auto&) { find(tensors, "a.signs").shape = {16}; });
  refused("expected F32 [5] for 'a.scale', got F32 [4]",
          [&](auto& tensors, auto&) { find(tensors, "a.scale").shape = {4}; });
  refused("expected F32 [5] for 'a.scale', got I32",
          [&](auto& tensors, auto&) { find(tensors, "a.scale").dtype = DType::kI32; });
  refused("expected a tensor 'a.signs'", [&](auto& tensors, auto&) { find(tensors, "a.signs").name = "a.weight"; });
  refused("finite numbers in weight, got nan (m)",
          [&](auto& tensors, auto&) { find(tensors, "m.weight").data = bad.data(); });
  refused("expected F32 [5, 2] for 'm.weight', got F32 [10]",
          [&](auto& tensors, auto&) { find(tensors, "m.weight").shape = {10}; });
  refused("or method=binary, got 'ternary'", [&](auto&, auto& metadata) { replace(metadata, "binary", "ternary"); });
  refused("a trainable bwn conv 'a'", [&](auto& tensors, auto& metadata) {
    replace(metadata, "\"method\":\"binary\"", "\"method\":\"bwn\"");
    TensorView& signs = find(tensors, "a.signs");
    static const std::vector<float> weights(135, 1.0f);
    signs = {"a.weight", DType::kF32, {5, 3, 3, 3}, weights.data()};
    tensors.erase(std::find_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.name == "a.scale"; }));
  });
}

// A bit becomes four bytes: 34 MB of signs would take a gigabyte.
TEST(Binary, FilesThatGrowTooLargeAreRefused) {
  const Graph graph = parse_network(
      "onetap-net 1\nnetwork wide\nx = input 16385x1x1\nc = conv x out=16384 method=binary\np = gap c\noutput p\n");
  const std::string signs(16385 * 16384 / 8, '\0');
  const std::vector<float> scales(16384, 1.0f);
  Metadata metadata = SafetensorsFile::parse(tap_bytes(random_tap_net(binary_graph(), 7)), "small").metadata();
  metadata.at("graph") = graph_json(graph);
  const std::vector<TensorView> tensors = {{"c.signs", DType::kU8, {static_cast<int64_t>(signs.size())}, signs.data()},
                                           {"c.scale", DType::kF32, {16384}, scales.data()}};
  expect_error(ErrorKind::kData, "expected at most 268435456 weights of one bit in a file, got 268451840 (c, wide.tap)",
               [&] { parse_tap(safetensors_bytes(tensors, metadata), "wide.tap"); });
}

TEST(Binary, EveryTruncationIsRefused) {
  const std::string bytes = tap_bytes(random_tap_net(binary_graph(), 7));
  for (size_t length = 0; length < bytes.size(); length += 3) {
    EXPECT_THROW(parse_tap(bytes.substr(0, length), "cut"), Error) << length;
  }
}

}  // namespace
}  // namespace onetap
