#include "onetap/tap/tap_file.h"

#include "onetap/base/half.h"
#include "onetap/base/safetensors.h"
#include "onetap/count/count.h"
#include "onetap/graph/json.h"
#include "onetap/graph/text.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"
#include "tests/tap/tampered.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <numeric>

namespace onetap {
namespace {

using testing::expect_error;
using testing::random_net;
using testing::Tampered;
using testing::TempDir;

TapNet round_trip(const TapNet& net) {
  return parse_tap(tap_bytes(net), "test");
}

void expect_equal(const TapNet& a, const TapNet& b) {
  EXPECT_TRUE(a.graph == b.graph);
  EXPECT_TRUE(a.layers == b.layers);
  EXPECT_EQ(a.weight_type, b.weight_type);
  EXPECT_EQ(a.pixels.mean, b.pixels.mean);
  EXPECT_EQ(a.pixels.sd, b.pixels.sd);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.value_ranges, b.value_ranges);
  EXPECT_EQ(a.facts, b.facts);
}

TEST(TapFile, RandomNetworksRoundTrip) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    TapNet net = random_net(seed);
    net.pixels.mean = {0.4914f, 0.4822f, 0.4465f};
    if (seed % 2 == 0) net.classes.assign(10, "a \"class\" \xc3\xa9");
    net.facts = {{"onetap", "0.1.0"}};
    if (seed % 3 == 0) net.value_ranges = {{net.graph.input().name, 0.1f}, {net.graph.output(), 3e-30f}};
    expect_equal(round_trip(net), net);
  }
}

TEST(TapFile, HalfWeightsComeBackAsRounded) {
  TapNet net = random_net(3);
  net.weight_type = WeightType::kF16;
  for (auto& [name, tensors] : net.layers) {
    auto* weight = tensors.weight.data<float>();
    for (size_t i = 0; i < tensors.weight.count(); ++i) weight[i] = float_from_half(half_from_float(weight[i]));
  }
  expect_equal(round_trip(net), net);
  TapNet wide = net;
  wide.weight_type = WeightType::kF32;
  EXPECT_LT(tap_bytes(net).size(), tap_bytes(wide).size());
}

// A network may hold numbers of any type; the file has them as they are.
TEST(TapFile, TensorsKeepTheirType) {
  TapNet net = random_tap_net(parse_network("onetap-net 1\nx = input 2x4x4\nc = conv x out=2 bias=1\ng = gap c\n"), 1);
  net.layers["c"].weight = Tensor::of<int8_t>({1, -2, 3, -128}, {2, 2, 1, 1});
  net.layers["c"].bias = Tensor::of<int32_t>({70000, -1}, {2});
  const std::string bytes = tap_bytes(net);
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "test");
  EXPECT_EQ(file.find("c.weight")->dtype, DType::kI8);
  EXPECT_EQ(file.find("c.bias")->dtype, DType::kI32);
  expect_equal(round_trip(net), net);
  expect_error(ErrorKind::kData, "type F32 to compute with, got I8 (c)",
               [&] { dense_weight(net, net.graph.node("c")); });
}

// The tensors are what the paper's rules count, but for the last byte of positions in each layer.
TEST(TapFile, LengthIsKnownBeforehandAndIsWhatCountSays) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const TapNet net = random_net(seed);
    const std::string bytes = tap_bytes(net);
    EXPECT_EQ(tap_length(net.graph, WeightType::kF32), bytes.size());
    const SafetensorsFile file = SafetensorsFile::parse(bytes, "test");
    uint64_t tensors = 0;
    for (const TensorView& tensor : file.tensors()) tensors += tensor.bytes();
    EXPECT_NEAR(static_cast<double>(tensors), 4 * count_network(net.graph, CountRules::kPaper).params,
                static_cast<double>(net.layers.size()));
  }
}

TapNet small_net() {
  return random_tap_net(
      parse_network("onetap-net 1\nx = input 2x4x4\nc = tapconv x out=3 kernel=3 pad=1 taps=2 share=2 bias=1\n"
                    "g = gap c\nf = linear g out=2\n"),
      5);
}

TEST(TapFile, AnySafetensorsReaderOpensIt) {
  const SafetensorsFile file = SafetensorsFile::parse(tap_bytes(small_net()), "test");
  EXPECT_EQ(file.metadata().at("format"), "onetap-tap");
  EXPECT_EQ(file.metadata().at("version"), "1");
  EXPECT_TRUE(nlohmann::json::accept(file.metadata().at("graph")));
}

// A file has the lowest version that has all of its parts.
TEST(TapFile, VersionsFollowTheLayout) {
  const auto version = [](const std::string& keys) {
    const TapNet net = random_tap_net(
        parse_network("onetap-net 1\nx = input 4x4x4\nc = tapconv x out=6 kernel=3 pad=1 " + keys + "\ng = gap c\n"),
        5);
    const std::string bytes = tap_bytes(net);
    EXPECT_TRUE(parse_tap(bytes, "test").layers == net.layers) << keys;
    return SafetensorsFile::parse(bytes, "test").metadata().at("version");
  };
  EXPECT_EQ(version("taps=1 share=1"), "1");
  EXPECT_EQ(version("taps=2 share=6"), "1");
  EXPECT_EQ(version("taps=1 share=4x4"), "3");
  EXPECT_EQ(version("taps=1 share=1 dropped=6"), "3");
  EXPECT_EQ(version("taps=1 share=4x4\nb = relu c"), "3");
  EXPECT_EQ(version("taps=1 share=4x4\nb = relu6 c"), "4");
  EXPECT_EQ(version("taps=1 share=4\nb = pad c sides=0,1,2,3"), "4");
}

// A reader of the version that is written would misread it.
TEST(TapFile, RefusesWhatIsNewerThanTheVersionItSays) {
  const auto refused = [](const std::string& node, const char* version, const char* reason) {
    Tampered file(random_tap_net(parse_network("onetap-net 1\nx = input 4x4x4\n" + node + "\ng = gap c\n"), 5));
    EXPECT_NO_THROW(parse_tap(file.bytes(), "good.tap")) << node;
    file.metadata["version"] = version;
    expect_error(ErrorKind::kData, reason, [&] { parse_tap(file.bytes(), "old.tap"); });
  };
  refused("c = shift x kernel=3", "1", "expected version 2 of a file with shift ('c'), got '1' (old.tap)");
  refused("c = activeshift x", "1", "version 2 of a file with activeshift");
  refused("c = conv x out=2 method=binary", "1", "version 2 of a file with binary weights ('c')");
  refused("c = tapconv x out=2 kernel=1", "1", "version 2 of a file with a tapconv of one position");
  refused("c = tapconv x out=8 kernel=3 pad=1 share=4x4", "2", "version 3 of a file with inputs that share positions");
  refused("c = tapconv x out=8 kernel=3 pad=1 dropped=6", "2",
          "version 3 of a file with dropped weights ('c'), got '2'");
  refused("s = sigmoid x\nc = mul x s", "3", "version 4 of a file with sigmoid ('s'), got '3'");
  refused("c = pad x sides=1,1,1,1", "1", "version 4 of a file with pad");
}

TEST(TapFile, WritesWholeFiles) {
  const TempDir dir;
  write_tap(dir / "m.tap", small_net());
  expect_equal(read_tap(dir / "m.tap"), small_net());
  EXPECT_TRUE(looks_like_tap(dir / "m.tap"));
  testing::write_text(dir / "net.txt", network_text(small_net().graph));
  EXPECT_FALSE(looks_like_tap(dir / "net.txt"));
  EXPECT_FALSE(looks_like_tap(dir.path()));
  expect_error(ErrorKind::kData, "cannot open", [&] { read_tap(dir / "none.tap"); });
}

TEST(TapFile, RefusesNetsThatAreNotWhole) {
  const auto refused = [](const char* part, const std::function<void(TapNet&)>& damage) {
    TapNet net = small_net();
    damage(net);
    expect_error(ErrorKind::kData, part, [&] { check_tap_net(net); });
  };
  refused("expected positions < 9, got 12 (c)", [](TapNet& net) { net.layers["c"].positions[1] = 12; });
  refused("ascending", [](TapNet& net) { net.layers["c"].positions[1] = net.layers["c"].positions[0]; });
  refused("values of positions", [](TapNet& net) { net.layers["c"].positions.pop_back(); });
  refused("no positions, got 1 (f)", [](TapNet& net) { net.layers["f"].positions = {0}; });
  refused("weight of shape [3, 2, 2], got [12] (c)",
          [](TapNet& net) { net.layers["c"].weight = Tensor(DType::kF32, {12}); });
  refused("bias of shape [3], got [] (c)", [](TapNet& net) { net.layers["c"].bias = Tensor(); });
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  refused("finite numbers in weight, got nan (c)",
          [&](TapNet& net) { net.layers["c"].weight.data<float>()[11] = nan; });
  refused("finite numbers in bias, got -inf (f)", [&](TapNet& net) { net.layers["f"].bias.data<float>()[0] = -inf; });
  refused("sd of pixels above 0, got 0", [](TapNet& net) { net.pixels.sd[2] = 0; });
  refused("sd of pixels above 0, got -1", [](TapNet& net) { net.pixels.sd[0] = -1; });
  refused("sd of pixels above 0, got nan", [&](TapNet& net) { net.pixels.sd[1] = nan; });
  refused("finite mean of pixels, got inf", [&](TapNet& net) { net.pixels.mean[1] = inf; });
  refused("tensors for 'f'", [](TapNet& net) { net.layers.erase("f"); });
  refused("of 2 layers, got 3", [](TapNet& net) { net.layers["more"] = {}; });
  refused("names for 2 classes, got 3", [](TapNet& net) { net.classes = {"a", "b", "c"}; });
  refused("ranges of nodes, got one of 'nobody'", [](TapNet& net) { net.value_ranges["nobody"] = 1; });
  refused("finite ranges of at least 0, got -1", [](TapNet& net) { net.value_ranges[net.graph.output()] = -1; });
  refused("got bn 'n'", [](TapNet& net) {
    net.graph = parse_network("onetap-net 1\nx = input 2x4x4\nn = bn x\n");
    net.layers.clear();
  });
}

TEST(TapFile, RefusesFilesThatLie) {
  const auto refused = [](const char* part, const std::function<void(Tampered&)>& damage) {
    Tampered file(small_net());
    damage(file);
    expect_error(ErrorKind::kData, part, [&] { parse_tap(file.bytes(), "bad.tap"); });
  };
  EXPECT_NO_THROW(parse_tap(Tampered(small_net()).bytes(), "good.tap"));
  refused("another kind of safetensors", [](Tampered& f) { f.metadata.erase("format"); });
  refused("expected version 1 to 4, got '5'", [](Tampered& f) { f.metadata["version"] = "5"; });
  refused("expected version 1 to 4, got '0'", [](Tampered& f) { f.metadata["version"] = "0"; });
  refused("'graph' in the metadata", [](Tampered& f) { f.metadata.erase("graph"); });
  refused("expected 'graph' or 'network' in the metadata, got both",
          [](Tampered& f) { f.metadata["network"] = "onetap-net 1"; });
  refused("node 0", [](Tampered& f) { f.metadata["graph"] = "{}"; });
  refused("three numbers in 'mean'", [](Tampered& f) { f.metadata["mean"] = "[1]"; });
  refused("three numbers in 'sd', got 700006 characters",
          [](Tampered& f) { f.metadata["sd"] = "[1,1," + std::string(700000, '1') + "]"; });
  refused("sd of pixels above 0, got 0 (bad.tap)", [](Tampered& f) { f.metadata["sd"] = "[0.2,0,0.2]"; });
  refused("sd of pixels above 0, got inf", [](Tampered& f) { f.metadata["sd"] = "[1,1,1e39]"; });
  refused("finite mean of pixels, got -inf", [](Tampered& f) { f.metadata["mean"] = "[-1e39,0,0]"; });
  const std::vector<float> bad(12, std::numeric_limits<float>::quiet_NaN());
  refused("finite numbers in weight, got nan (c) (bad.tap)",
          [&](Tampered& f) { f.tensor("c.weight").data = bad.data(); });
  refused("finite numbers in bias, got nan (f)", [&](Tampered& f) { f.tensor("f.bias").data = bad.data(); });
  refused("class names", [](Tampered& f) { f.metadata["classes"] = "[1]"; });
  refused("ranges by name", [](Tampered& f) { f.metadata["ranges"] = "[1]"; });
  refused("ranges that are numbers", [](Tampered& f) { f.metadata["ranges"] = "{\"x\":\"1\"}"; });
  refused("expected a tensor 'c.bias'", [](Tampered& f) { f.tensor("c.bias").name = "d.bias"; });
  refused("for 'f.weight'", [](Tampered& f) { f.tensor("f.weight").shape = {3, 2}; });
  // Of 16 bits are all weights or none, and no bias.
  const std::vector<uint16_t> halves(12, 0x3c00);
  refused("expected F16 [2, 3] for 'f.weight', got F32", [&](Tampered& f) {
    f.tensor("c.weight").dtype = DType::kF16;
    f.tensor("c.weight").data = halves.data();
  });
  refused("expected F32 [2] for 'f.bias', got F16", [&](Tampered& f) {
    f.tensor("f.bias").dtype = DType::kF16;
    f.tensor("f.bias").data = halves.data();
  });
  refused("expected 5 tensors, got 6", [](Tampered& f) {
    f.tensors.push_back({"more", DType::kF32, {1}, f.tensor("f.bias").data});
  });
  // A header that promises a gigantic layer: refused by size, not by trying to allocate it.
  refused("for 'f.weight'", [](Tampered& f) {
    auto graph = nlohmann::json::parse(f.metadata["graph"]);
    graph["nodes"][3]["out"] = 1000000;
    f.metadata["graph"] = graph.dump();
  });
}

// Weights that are no frozen network may say how pixels are scaled, too.
TEST(TapFile, PixelsInTheMetadataOfOtherFiles) {
  const PixelScale pixels = {{0.4914f, -1, 0}, {1.0f / 255, 0.1994f, 1e-30f}};
  const auto found = find_pixels(pixel_metadata(pixels), "w");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->mean, pixels.mean);
  EXPECT_EQ(found->sd, pixels.sd);
  EXPECT_FALSE(find_pixels({{"format", "pt"}}, "w").has_value());
  const auto refused = [](const char* part, const Metadata& metadata) {
    expect_error(ErrorKind::kData, part, [&] { find_pixels(metadata, "w.safetensors"); });
  };
  refused("expected 'sd' in the metadata, got none (w.safetensors)", {{"mean", "[0,0,0]"}});
  refused("expected 'mean' in the metadata, got none (w.safetensors)", {{"sd", "[1,1,1]"}});
  refused("three numbers in 'mean', got '0,0,0' (w.safetensors)", {{"mean", "0,0,0"}, {"sd", "[1,1,1]"}});
  refused("three numbers in 'sd'", {{"mean", "[0,0,0]"}, {"sd", "[1,1]"}});
  refused("three numbers in 'sd'", {{"mean", "[0,0,0]"}, {"sd", "[1,1,\"1\"]"}});
  refused("got 100000 characters (w.safetensors)", {{"mean", std::string(100000, '[')}, {"sd", "[1,1,1]"}});
  refused("sd of pixels above 0, got 0 (w.safetensors)", {{"mean", "[0,0,0]"}, {"sd", "[1,0,1]"}});
  refused("finite mean of pixels, got inf (w.safetensors)", {{"mean", "[0,0,1e39]"}, {"sd", "[1,1,1]"}});
}

TEST(TapFile, EveryTruncationIsRefused) {
  const std::string bytes = tap_bytes(small_net());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(parse_tap(bytes.substr(0, length), "cut"), Error) << length;
  }
}

TEST(TapNetTest, DenseWeightAndKeptCounts) {
  const TapNet net = small_net();
  const Node& node = net.graph.node("c");
  const auto dense = dense_weight(net, node);
  ASSERT_EQ(dense.size(), 3u * 2 * 9);
  size_t kept = 0;
  for (const float weight : dense) kept += weight != 0 ? 1u : 0u;
  EXPECT_EQ(kept, 3u * 2 * 2);
  const auto counts = kept_counts(net, node);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 3 * 2 * 2);  // outputs, inputs, taps
}

}  // namespace
}  // namespace onetap
