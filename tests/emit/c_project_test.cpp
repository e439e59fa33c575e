// Generated C, compiled and run: what its self-test says, and what it computes on inputs of its own.
#include "onetap/emit/c_project.h"

#include "onetap/base/fail.h"
#include "onetap/emit/dense_form.h"
#include "onetap/graph/text.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "tests/graph/small_nets.h"
#include "tests/quant/random_int8_net.h"
#include "tests/support/support.h"

#include <cstdlib>

namespace onetap {
namespace {

using testing::expect_error;
using testing::read_text;
using testing::TempDir;
using testing::write_text;

constexpr const char* kStrict = "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror";
constexpr const char* kSanitize = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all";

bool has_compiler(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

int exit_code(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

GoldenSample golden_of(const TapNet& net) {
  GoldenSample golden = golden_input(net.graph);
  const std::vector<float> input = golden.input_floats();
  golden.output = net.is_int8() ? Int8Reference(net).run(input.data()) : run_reference(net, input.data());
  return golden;
}

CProject project_of(const TapNet& net, RowMode mode) {
  CProjectOptions options;
  options.name = "net";
  options.mode = mode;
  return c_project(net, options, golden_of(net));
}

void write_project(const std::filesystem::path& folder, const CProject& project) {
  for (const CFile& file : project.files) write_text(folder / file.name, file.text);
}

std::string sources(const std::filesystem::path& folder) {
  std::string names;
  for (const char* name : {"net.c", "net_weights.c", "net_selftest.c"}) names += (folder / name).string() + " ";
  return names;
}

// Neither compiler warns, and the self-test passes under gcc's sanitizers.
void expect_selftest(const TapNet& net, RowMode mode, const std::string& what) {
  const TempDir folder;
  write_project(folder.path(), project_of(net, mode));
  const std::string program = (folder / "selftest").string(), log = (folder / "log").string();
  const auto succeeds = [&](const std::string& command) {
    ASSERT_EQ(exit_code(fmt::format("{} >{} 2>&1", command, log)), 0) << what << ": " << read_text(log);
  };
  const std::string files = sources(folder.path());
  if (has_compiler("clang")) succeeds(fmt::format("clang -fsyntax-only {} {}", kStrict, files));
  if (!has_compiler("gcc")) GTEST_SKIP() << "no gcc";
  succeeds(fmt::format("gcc {} {} {} -o {}", kStrict, kSanitize, files, program));
  succeeds(program);
}

// The highest byte of the arena that a run writes: with one filling or the other it is not what was there.
constexpr const char* kHighWater = R"(#include "net.h"
#include <stdio.h>
#include <string.h>
static float in[NET_INPUTS], out[NET_OUTPUTS];
static unsigned int arena[(NET_ARENA_BYTES + 3) / 4];
int main(void) {
  long high = -1;
  for (int fill = 0; fill < 256; fill += 255) {
    memset(arena, fill, sizeof arena);
    for (int i = 0; i < NET_INPUTS; ++i) in[i] = (float)(i % 37 - 18) / 9.0f;
    net_run(in, out, arena);
    for (long i = 0; i < NET_ARENA_BYTES; ++i) {
      if (((unsigned char*)arena)[i] != fill && i > high) high = i;
    }
  }
  return NET_ARENA_BYTES - 1 - high < 4 ? 0 : 1;
}
)";

TEST(CProject, RandomNetworksPassTheirSelfTests) {
  for (uint64_t seed = 0; seed < testing::sweep_cases(5); ++seed) {
    const RowMode mode = seed % 2 == 0 ? RowMode::kRows : RowMode::kLayers;
    expect_selftest(testing::random_net(seed), mode, "seed " + std::to_string(seed));
  }
}

TEST(CProject, RandomInt8NetworksGiveTheBytesOfTheReference) {
  for (uint64_t seed = 0; seed < testing::sweep_cases(10); ++seed) {
    const RowMode mode = seed % 2 == 0 ? RowMode::kRows : RowMode::kLayers;
    expect_selftest(testing::random_int8_net(seed), mode, "int8 seed " + std::to_string(seed));
  }
}

TEST(CProject, ResNetsOfEveryLayoutPassTheirSelfTests) {
  for (const char* share : {"1", "4x4", "3x2", "allx4"}) {
    const Graph graph = frozen_form(testing::small_resnet(sal_method(1, parse_share(share).value()))).graph;
    const TapNet net = random_tap_net(graph, 1);
    expect_selftest(net, RowMode::kRows, share);
    expect_selftest(testing::quantized(net, 1), RowMode::kRows, std::string("int8 ") + share);
  }
  const TapNet dense = random_tap_net(frozen_form(testing::small_resnet(Method())).graph, 1);
  expect_selftest(dense, RowMode::kRows, "dense");
  expect_selftest(testing::quantized(dense, 1), RowMode::kRows, "int8 dense");
}

TEST(CProject, TheArenaIsAsLargeAsWhatIsWritten) {
  if (!has_compiler("gcc")) GTEST_SKIP() << "no gcc";
  const TapNet floats = random_tap_net(frozen_form(testing::small_resnet(sal_method())).graph, 1);
  const TapNet bytes = testing::quantized(floats, 1);
  for (const TapNet* net : {&floats, &bytes}) {
    for (const RowMode mode : {RowMode::kLayers, RowMode::kRows}) {
      const TempDir folder;
      const CProject project = project_of(*net, mode);
      write_project(folder.path(), project);
      write_text(folder / "high.c", kHighWater);
      const std::string path = folder.path().string();
      ASSERT_EQ(exit_code(fmt::format("gcc -O1 {0}/high.c {0}/net.c {0}/net_weights.c -o {0}/high", path)), 0);
      EXPECT_EQ(exit_code(path + "/high"), 0) << net->is_int8() << " " << project.sizes.arena;
    }
  }
}

TEST(CProject, RowByRowTakesHalfOfTheMemory) {
  NetSpec spec;
  spec.arch = "resnet8";
  spec.width = 16;
  const TapNet net = random_tap_net(frozen_form(build_network(spec)).graph, 1);
  // By hand: two values of 16 x 32 x 32 floats, and zeros for what is around the image: 64 channels.
  EXPECT_EQ(c_sizes(net, RowMode::kLayers).arena, 2 * 16 * 32 * 32 * 4 + 64 * 4);
  EXPECT_LT(2 * c_sizes(net, RowMode::kRows).arena, c_sizes(net, RowMode::kLayers).arena);
}

TEST(DenseForm, ComputesTheSame) {
  const TapNet net =
      random_tap_net(frozen_form(testing::small_resnet(sal_method(1, parse_share("4x4").value()))).graph, 1);
  const TapNet bytes = testing::quantized(net, 1);
  EXPECT_EQ(golden_of(dense_form(bytes)).output, golden_of(bytes).output);
  const std::vector<float> dense = golden_of(dense_form(net)).output, taps = golden_of(net).output;
  ASSERT_EQ(dense.size(), taps.size());
  for (size_t i = 0; i < taps.size(); ++i) EXPECT_NEAR(dense[i], taps[i], 1e-5);
  EXPECT_EQ(c_sizes(dense_form(net), RowMode::kRows).positions, 0);
}

TEST(CProject, RefusesWhatItCannotWrite) {
  const TapNet net = random_tap_net(frozen_form(testing::small_resnet(Method())).graph, 1);
  for (const char* name : {"", "1net", "my-net", "a b", "for", "n\xc3\xa4t"}) {
    CProjectOptions options;
    options.name = name;
    expect_error(ErrorKind::kUsage, "C identifier", [&] { c_project(net, options, golden_of(net)); });
  }
  const auto sizes_of = [](const std::string& nodes) {
    c_sizes(random_tap_net(parse_network("onetap-net 1\nx = input 3x8x8\n" + nodes), 1), RowMode::kRows);
  };
  expect_error(ErrorKind::kUsage, "got activeshift ('a')", [&] { sizes_of("a = activeshift x\n"); });
  expect_error(ErrorKind::kUsage, "at most 255 positions, and strides, pads and dilations up to it, got 256 ('c')",
               [&] { sizes_of("c = conv x out=2 kernel=16 pad=8\n"); });
}

}  // namespace
}  // namespace onetap
