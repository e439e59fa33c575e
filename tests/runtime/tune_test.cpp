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

TEST(Choose, RulesGiveATileThatTheKernelsHave) {
  for (const KernelSet* kernels : kernel_sets()) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const ConvShape shape = testing::random_conv_case(seed).shape;
      const ConvBlocking blocking = choose_blocking(shape, *kernels);
      ASSERT_GE(blocking.outputs, 1);
      ASSERT_LE(blocking.vectors, kernels->max_vectors(blocking.outputs));
      ASSERT_GE(blocking.channels, 1);
      ASSERT_GE(blocking.tile_vectors, 1);
    }
  }
}

TEST(TuneCache, RemembersAcrossProcesses) {
  const testing::TempDir folder;
  const SmallConv conv = small_conv();
  const KernelSet& kernels = find_kernels();
  TuneCache first(folder / "tune.json");
  const ConvBlocking found = first.find_or_tune(conv.shape, conv.weights(), kernels);
  first.save();
  const std::string text = testing::read_text(folder / "tune.json");
  EXPECT_NE(text.find(kernels.name), std::string::npos);
  TuneCache second(folder / "tune.json");
  EXPECT_TRUE(second.find_or_tune(conv.shape, conv.weights(), kernels) == found);
  second.save();
  EXPECT_EQ(testing::read_text(folder / "tune.json"), text);
}

TEST(TuneCache, RubbishCountsAsEmpty) {
  const testing::TempDir folder;
  const SmallConv conv = small_conv();
  for (const char* text :
       {"", "no json", "[1, 2]", "{\"a\": 1}", "{\"a\": {\"outputs\": 1e99}}", "{\"a\": {\"outputs\": 0}}"}) {
    testing::write_text(folder / "tune.json", text);
    TuneCache cache(folder / "tune.json");
    const ConvBlocking blocking = cache.find_or_tune(conv.shape, conv.weights(), find_kernels());
    EXPECT_GE(blocking.vectors, 1) << text;
    cache.save();
  }
}

}  // namespace
}  // namespace onetap
