#include "onetap/runtime/choose.h"
#include "onetap/runtime/tune_cache.h"
#include "tests/kernels/conv_case.h"
#include "tests/support/support.h"

namespace onetap {
namespace {

struct SmallConv {
  ConvShape shape;
  std::vector<float> weight;
  std::vector<uint16_t> positions;
  ConvWeights weights() const { return {weight.data(), positions.data(), nullptr}; }
};

SmallConv small_conv() {
  SmallConv conv;
  conv.shape.in = 6;
  conv.shape.in_h = conv.shape.in_w = 9;
  conv.shape.out = 5;
  conv.shape.kernel_h = conv.shape.kernel_w = 3;
  conv.shape.padding_h = conv.shape.padding_w = 1;
  conv.shape.taps = 1;
  Random random(1, Purpose::kTest);
  conv.weight = testing::uniform_floats(30, random);
  conv.positions = testing::uniform_positions(conv.shape, random);
  return conv;
}

ConvShape layer_of(int64_t taps, int64_t share) {
  ConvShape shape;
  shape.in = shape.out = 64;
  shape.in_h = shape.in_w = 32;
  shape.kernel_h = shape.kernel_w = 3;
  shape.padding_h = shape.padding_w = 1;
  shape.taps = taps;
  shape.share_outputs = share;
  return shape;
}

// docs/cpu-speed.md: a 3x3 layer whose outputs are alone runs dense from five taps on, as 5 * 2.5 > 9 * 1.2; one whose
// outputs share in fours from eight, as 8 * 1.4 > 9 * 1.2.
TEST(Choose, DenseWhereItIsCheaper) {
  for (const KernelSet* kernels : kernel_sets()) {
    const auto is_dense = [&](int64_t taps, int64_t share) {
      return choose_blocking(layer_of(taps, share), *kernels).dense;
    };
    EXPECT_TRUE(is_dense(0, 1)) << "not pruned at all";
    EXPECT_FALSE(is_dense(1, 1));
    EXPECT_FALSE(is_dense(4, 1));
    EXPECT_TRUE(is_dense(5, 1));
    EXPECT_FALSE(is_dense(7, 4));
    EXPECT_TRUE(is_dense(8, 4));
  }
}

TEST(Choose, AsManyOutputsInRegistersAsShareTheirTaps) {
  for (const KernelSet* kernels : kernel_sets()) {
    for (const auto& [share, outputs] : {std::pair{1, 1}, {2, 2}, {3, 3}, {4, 4}, {13, 4}}) {
      const ConvBlocking blocking = choose_blocking(layer_of(1, share), *kernels);
      EXPECT_EQ(blocking.outputs, outputs) << "share " << share;
      EXPECT_EQ(blocking.vectors, kernels->max_vectors(outputs)) << "share " << share;
    }
    ConvShape depthwise = layer_of(0, 1);
    depthwise.groups = 64;
    EXPECT_EQ(choose_blocking(depthwise, *kernels).outputs, 1) << "one output of a group sees its input";
  }
}

// A pack of some channels: three shifted copies of a tile and of the two rows below it.
TEST(Choose, PacksStayWithin128KiB) {
  for (const KernelSet* kernels : kernel_sets()) {
    for (const int64_t share : {1, 4}) {
      const ConvBlocking blocking = choose_blocking(layer_of(1, share), *kernels);
      EXPECT_GE(blocking.tile_vectors, blocking.vectors) << "less than a tile of registers";
      const int64_t bytes = blocking.channels * 3 * (blocking.tile_vectors * kernels->lanes + 2 * 32) * 4;
      EXPECT_LE(bytes, 128 << 10) << kernels->name;
      EXPECT_GE(blocking.channels, 4);
    }
  }
}

// A plan changes a blocking that does not suit it: what the rules give, it keeps.
TEST(Choose, RulesGiveWhatAPlanKeeps) {
  for (const KernelSet* kernels : kernel_sets()) {
    for (uint64_t seed = 0; seed < testing::sweep_cases(300); ++seed) {
      const ConvShape shape = testing::random_conv_case(seed).shape;
      if (shape.groups > 1 && shape.taps > 0) continue;  // outputs that share across groups run alone
      Random random(seed, Purpose::kTest);
      const auto weight = testing::uniform_floats(shape.out * shape.in_per_group() * shape.taps_per_slice(), random);
      const auto positions = shape.taps > 0 ? testing::uniform_positions(shape, random) : std::vector<uint16_t>();
      const ConvBlocking blocking = choose_blocking(shape, *kernels);
      const ConvPlan plan(shape, {weight.data(), positions.data(), nullptr}, blocking, *kernels);
      EXPECT_TRUE(plan.blocking() == blocking) << kernels->name << " seed " << seed;
    }
  }
}

// No rule and no timing gives this: whoever returns it has read it.
constexpr const char* kOddValues = R"({"outputs": 3, "vectors": 1, "channels": 5, "tile_vectors": 2, "dense": true})";

bool is_odd(const ConvBlocking& blocking) {
  return blocking == ConvBlocking{3, 1, 5, 2, true};
}

// The name under which a cache keeps the small convolution.
std::string key_in(const std::string& text) {
  const size_t end = text.find("\": {");
  const size_t begin = text.rfind('"', end - 1) + 1;
  return text.substr(begin, end - begin);
}

ConvBlocking find_small(TuneCache& cache) {
  const SmallConv conv = small_conv();
  return cache.find_or_tune(conv.shape, conv.weights(), find_kernels());
}

TEST(TuneCache, RemembersAcrossProcesses) {
  const testing::TempDir folder;
  TuneCache first(folder / "tune.json");
  const ConvBlocking found = find_small(first);
  EXPECT_FALSE(is_odd(found));
  first.save();
  const std::string text = testing::read_text(folder / "tune.json");
  EXPECT_NE(text.find(find_kernels().name), std::string::npos);
  // What was found is what was written.
  EXPECT_NE(text.find("\"tile_vectors\": " + std::to_string(found.tile_vectors)), std::string::npos) << text;
  // The next process takes what the file says, without trying.
  const std::string other = "{\"" + key_in(text) + "\": " + kOddValues + "}";
  testing::write_text(folder / "tune.json", other);
  TuneCache second(folder / "tune.json");
  EXPECT_TRUE(is_odd(find_small(second)));
  // And leaves the file alone, as nothing is new.
  second.save();
  EXPECT_EQ(testing::read_text(folder / "tune.json"), other);
}

TEST(TuneCache, KeepsShapesApart) {
  const testing::TempDir folder;
  TuneCache first(folder / "tune.json");
  find_small(first);
  first.save();
  const std::string key = key_in(testing::read_text(folder / "tune.json"));
  testing::write_text(folder / "tune.json", "{\"" + key + "\": " + kOddValues + "}");
  TuneCache second(folder / "tune.json");
  SmallConv other = small_conv();
  other.shape.padding_w = 0;
  EXPECT_FALSE(is_odd(second.find_or_tune(other.shape, other.weights(), find_kernels())));
}

TEST(TuneCache, RubbishCountsAsEmpty) {
  const testing::TempDir folder;
  TuneCache first(folder / "tune.json");
  find_small(first);
  first.save();
  const std::string key = key_in(testing::read_text(folder / "tune.json"));
  const std::string good = "\"" + key + "\": " + kOddValues;
  const auto find_after = [&](const std::string& text) {
    testing::write_text(folder / "tune.json", text);
    TuneCache cache(folder / "tune.json");
    const ConvBlocking found = find_small(cache);
    cache.save();
    // What is saved then can be read.
    EXPECT_EQ(key_in(testing::read_text(folder / "tune.json")), key) << text;
    return found;
  };
  EXPECT_TRUE(is_odd(find_after("{" + good + "}")));
  // One bad row, and none is believed.
  for (const char* bad :
       {"\"a\": 1", "\"a\": {\"outputs\": 1e99}", "\"a\": {\"outputs\": 0}", "\"a\": []", "rubbish"}) {
    EXPECT_FALSE(is_odd(find_after("{" + good + ", " + bad + "}"))) << bad;
  }
  for (const std::string& text : {std::string(), std::string("no json"), "[" + good + "]", "{" + good}) {
    EXPECT_FALSE(is_odd(find_after(text))) << text;
  }
  // A number out of range in its own row.
  EXPECT_GE(
      find_after("{\"" + key + R"(": {"outputs": 0, "vectors": 1, "channels": 5, "tile_vectors": 2, "dense": true}})")
          .outputs,
      1);
}

// Without a path: $XDG_CACHE_HOME, else ~/.cache, else nowhere.
TEST(TuneCache, LiesInTheUsersCacheFolder) {
  const testing::TempDir folder;
  const testing::Variable home("HOME", (folder / "home").c_str());
  {
    const testing::Variable cache("XDG_CACHE_HOME", (folder / "cache").c_str());
    TuneCache tuned;
    find_small(tuned);
    tuned.save();
    EXPECT_TRUE(std::filesystem::exists(folder / "cache/onetap/tune.json"));
    EXPECT_FALSE(std::filesystem::exists(folder / "home"));
    // The next one finds it there.
    const std::string key = key_in(testing::read_text(folder / "cache/onetap/tune.json"));
    testing::write_text(folder / "cache/onetap/tune.json", "{\"" + key + "\": " + kOddValues + "}");
    TuneCache next;
    EXPECT_TRUE(is_odd(find_small(next)));
  }
  const testing::Variable relative("XDG_CACHE_HOME", "cache");  // the standard: relative paths count as none
  TuneCache tuned;
  find_small(tuned);
  tuned.save();
  EXPECT_TRUE(std::filesystem::exists(folder / "home/.cache/onetap/tune.json"));
}

}  // namespace
}  // namespace onetap
