#include "onetap/runtime/memory.h"

#include "onetap/graph/text.h"
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

namespace onetap {
namespace {

TapNet network(const std::string& nodes) {
  return random_tap_net(parse_network("onetap-net 1\nnetwork huge\n" + nodes), 1);
}

TEST(Memory, SizesAreRead) {
  EXPECT_EQ(parse_memory("1500000", "x"), 1500000);
  for (const char* text : {"64K", "64KB", "64KiB"}) EXPECT_EQ(parse_memory(text, "x"), 64 * 1024) << text;
  EXPECT_EQ(parse_memory("7B", "x"), 7);
  EXPECT_EQ(parse_memory("512M", "x"), 512 * 1024 * 1024);
  EXPECT_EQ(parse_memory("2G", "x"), int64_t{2} << 30);
  for (const char* text : {"", "0", "G", "-1", "1.5G", "2g", "2GBB", "B", "KB", "9000000000G", "lots"}) {
    testing::expect_error(ErrorKind::kUsage, "for --memory, got '" + std::string(text) + "'",
                          [&] { parse_memory(text, "--memory"); });
  }
}

TEST(Memory, NeedsBeyondWhatANumberHoldsStayBeyondTheLimit) {
  MemoryNeed need("hostile", int64_t{1} << 30);
  for (int i = 0; i < 5; ++i) need.add(int64_t{1} << 62, "a layer");
  testing::expect_error(ErrorKind::kUsage, "runs in 1.00 GiB", [&] { need.check(); });
}

TEST(Memory, TheLimitIsWhatWasAskedThenTheEnvironmentsThenOneGiB) {
  EXPECT_EQ(memory_limit(0), int64_t{1} << 30);
  const testing::Variable variable("ONETAP_MEMORY", "3M");
  EXPECT_EQ(memory_limit(0), 3 << 20);
  EXPECT_EQ(memory_limit(5), 5);
  const testing::Variable wrong("ONETAP_MEMORY", "much");
  testing::expect_error(ErrorKind::kUsage, "ONETAP_MEMORY, got 'much'", [] { memory_limit(0); });
  testing::expect_error(ErrorKind::kUsage, "got -1", [] { memory_limit(-1); });
}

// A file of a few bytes asks for gigabytes; nothing of that size is taken before it is refused.
TEST(Memory, AHugeNetworkIsRefusedWhenItIsLoaded) {
  // Two values of 4x8192x8192 floats: 2 GiB; the image: 0.75; a mask of a plane for each convolution: 0.25.
  const TapNet net = network("x = input 3x8192x8192\na = conv x out=4\nb = conv a out=4\ng = gap b\n");
  testing::expect_error(ErrorKind::kUsage, "runs in 1.00 GiB of memory, got one that needs 3.25 GiB",
                        [&] { Model{net}; });
  testing::expect_error(ErrorKind::kUsage, "for values around layer 'b' (huge; --memory, ONETAP_MEMORY",
                        [&] { Model{net}; });
  // Of the reference, at b: a and b are alive.
  testing::expect_error(ErrorKind::kUsage, "needs 2.00 GiB, of which 2.00 GiB for values around layer 'b'",
                        [&] { run_reference(net, nullptr); });
}

TEST(Memory, TheImageAndTablesCount) {
  // The arena is small: it is the image that is large.
  testing::expect_error(ErrorKind::kUsage, "for an image of 3x16384x16384",
                        [] { Model{network("x = input 3x16384x16384\ng = gap x\n")}; });
  // A large kernel: 64 shifted masks of 64 MiB.
  testing::expect_error(ErrorKind::kUsage, "for weights and tables of layer 'a'", [] {
    Model{network("x = input 1x4096x4096\na = tapconv x out=1 kernel=63 pad=31 taps=1\ng = gap a\n")};
  });
}

TEST(Memory, ScratchOfALayerCounts) {
  // A stride takes the planes apart, in scratch: 8 channels of 512x512 floats are 8 MiB. The image is as large.
  const TapNet net = network("x = input 8x512x512\na = conv x out=1 kernel=2 stride=2\ng = gap a\n");
  ModelOptions options;
  options.memory_limit = 12 << 20;
  testing::expect_error(ErrorKind::kUsage, "runs in 12.00 MiB", [&] { Model(net, options); });
  options.memory_limit = 24 << 20;
  const auto model = std::make_shared<const Model>(net, options);
  EXPECT_GE(model->scratch_bytes(), 8 << 20);
  // With every thread its own.
  Session fits(model, {1, 1});
  testing::expect_error(ErrorKind::kUsage, "for scratch of layer 'a'", [&] { Session(model, {4, 1}); });
}

// Tuning tries the dense form of every layer, too: 64 x 64 slices of 25 positions in 6 bytes each are 600 KiB, the kept
// taps alone 24.
TEST(Memory, TuningCountsTheDenseForm) {
  const testing::TempDir cache;
  const testing::Variable variable("XDG_CACHE_HOME", cache.path().c_str());
  const TapNet net = network("x = input 64x8x8\na = tapconv x out=64 kernel=5 pad=2 taps=1\ng = gap a\n");
  ModelOptions options;
  options.memory_limit = 500 << 10;
  EXPECT_FALSE(Model(net, options).layer(0).conv->blocking().dense);
  options.tune = true;
  testing::expect_error(ErrorKind::kUsage, "for weights and tables of layer 'a'", [&] { Model(net, options); });
  EXPECT_TRUE(std::filesystem::is_empty(cache.path())) << "it was refused before anything was tried";
  options.memory_limit = 1 << 20;
  EXPECT_NO_THROW(Model(net, options));
}

TEST(Memory, ASessionCountsItsArenas) {
  const TapNet net = network("x = input 1x64x64\na = conv x out=64\nb = conv a out=64\ng = gap b\n");
  ModelOptions options;
  options.memory_limit = 4 << 20;  // the arena of one image is 2 MiB and some
  const auto model = std::make_shared<const Model>(net, options);
  EXPECT_GE(model->arena_bytes(), 2 * 64 * 64 * 64 * 4);
  Session one(model, {2, 1});
  testing::expect_error(ErrorKind::kUsage, "values around layer 'b'", [&] { Session(model, {2, 2}); });
}

TEST(Memory, TheLimitCanBeRaised) {
  const TapNet net = network("x = input 1x64x64\na = conv x out=64\ng = gap a\n");
  const std::vector<float> image(64 * 64, 0.5f);
  const testing::Variable little("ONETAP_MEMORY", "1M");
  testing::expect_error(ErrorKind::kUsage, "runs in 1.00 MiB", [&] { Model{net}; });
  testing::expect_error(ErrorKind::kUsage, "runs in 1.00 MiB", [&] { run_reference(net, image.data()); });
  ModelOptions options;
  options.memory_limit = 2 << 20;
  Session session(std::make_shared<const Model>(net, options));
  EXPECT_EQ(run_reference(net, image.data(), 2 << 20).size(), 64u);
}

// What is estimated before a convolution is planned is no less than what it then takes.
TEST(Memory, TheEstimateHolds) {
  for (const KernelSet* kernels : kernel_sets()) {
    for (uint64_t seed = 0; seed < testing::sweep_cases(100); ++seed) {
      const TapNet net = testing::random_net(seed);
      const Model model(net, {kernels->name, false, seed % 3 == 0});
      for (size_t i = 0; i < model.plan().steps.size(); ++i) {
        const ConvPlan* conv = model.layer(i).conv.get();
        if (conv == nullptr) continue;
        EXPECT_GE(conv_plan_bytes(conv->shape(), conv->blocking(), *kernels), conv->stream_bytes());
      }
    }
  }
}

}  // namespace
}  // namespace onetap
