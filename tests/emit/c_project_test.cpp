// Generated C, compiled and run: what its self-test says, and what it computes on inputs of its own.
#include "onetap/emit/c_project.h"

#include "onetap/base/fail.h"
#include "onetap/emit/c_program.h"
#include "onetap/emit/dense_form.h"
#include "onetap/graph/text.h"
#include "onetap/tap/moved_kernel.h"
#include "tests/emit/zoo_net.h"
#include "tests/quant/random_int8_net.h"
#include "tests/support/support.h"

#include <cstdlib>
#include <limits>

namespace onetap {
namespace {

using testing::expect_error;
using testing::golden_of;
using testing::read_text;
using testing::TempDir;
using testing::write_text;

constexpr const char* kStrict = "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror";
constexpr const char* kSanitize = "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all";

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

int exit_code(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
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

// Runs the self-test, and the network in an arena of exactly its size (so that what is read or written beside it
// shows), filled with zeros, with ones (NaN as floats), and with nothing. What was not written must not be read: it
// would change the output, or be seen by Valgrind. The last word of the arena must be written.
constexpr const char* kCheck = R"(#include "net.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int net_selftest(void);
static float in[NET_INPUTS], out[3][NET_OUTPUTS];
int main(void) {
  const int failed = net_selftest();
  long high = -1;
  if (failed != 0) return printf("the self-test returns %d\n", failed), 1;
  for (int i = 0; i < NET_INPUTS; ++i) in[i] = (float)(i % 37 - 18) / 9.0f;
  for (int run = 0; run < 3; ++run) {
    unsigned char* arena = malloc(NET_ARENA_BYTES);
    const int fill = run == 0 ? 0 : 255;
    if (arena == NULL) return 2;
    if (run < 2) memset(arena, fill, NET_ARENA_BYTES);
    net_run(in, out[run], arena);
    for (long i = high + 1; i < NET_ARENA_BYTES && run < 2; ++i) {
      if (arena[i] != fill) high = i;
    }
    free(arena);
    for (int i = 0; i < NET_OUTPUTS; ++i) {
      if (!(out[run][i] >= out[0][i] && out[run][i] <= out[0][i])) return printf("output %d, run %d\n", i, run), 1;
    }
  }
  if (high / 4 != (NET_ARENA_BYTES - 1) / 4) return printf("the last byte written is %ld\n", high), 1;
  return 0;
}
)";

// Neither compiler warns, and self-test and check pass: under gcc's sanitizers, or under Valgrind.
void expect_checked(const TapNet& net, RowMode mode, const std::string& what, bool valgrind = false) {
  const TempDir folder;
  write_project(folder.path(), project_of(net, mode));
  write_text(folder / "check.c", kCheck);
  const std::string program = (folder / "check").string(), log = (folder / "log").string();
  const auto succeeds = [&](const std::string& command) {
    ASSERT_EQ(exit_code(fmt::format("{} >{} 2>&1", command, log)), 0) << what << ": " << read_text(log);
  };
  std::string files;
  for (const char* name : {"net.c", "net_weights.c", "net_selftest.c", "check.c"}) {
    files += (folder / name).string() + " ";
  }
  if (has_program("clang") && !valgrind)
    succeeds(fmt::format("clang -DNET_NO_MAIN -fsyntax-only {} {}", kStrict, files));
  if (!has_program("gcc")) GTEST_SKIP() << "no gcc";
  succeeds(fmt::format("gcc -DNET_NO_MAIN {} {} {} -o {}", kStrict, valgrind ? "-O1 -g" : kSanitize, files, program));
  succeeds((valgrind ? "valgrind -q --error-exitcode=9 " : "") + program);
}

NetSpec small_spec(const std::string& arch, int64_t width) {
  NetSpec spec;
  spec.arch = arch;
  spec.width = width;
  spec.image = Shape{3, 32, 32};
  return spec;
}

TEST(CProject, RandomNetworksPassTheirSelfTests) {
  for (uint64_t seed = 0; seed < testing::sweep_cases(5); ++seed) {
    const RowMode mode = seed % 2 == 0 ? RowMode::kRows : RowMode::kLayers;
    expect_checked(testing::random_net(seed), mode, "seed " + std::to_string(seed));
  }
}

TEST(CProject, RandomInt8NetworksGiveTheBytesOfTheReference) {
  for (uint64_t seed = 0; seed < testing::sweep_cases(10); ++seed) {
    const RowMode mode = seed % 2 == 0 ? RowMode::kRows : RowMode::kLayers;
    expect_checked(testing::random_int8_net(seed), mode, "int8 seed " + std::to_string(seed));
  }
}

TEST(CProject, ResNetsOfEveryLayoutPassTheirSelfTests) {
  int64_t width = 4;
  for (const char* share :
       {"dense", "1", "1-drop", "4", "4-drop", "4x4", "4x4-drop", "all", "all-drop", "allx4", "3x2"}) {
    const RowMode mode = width == 4 ? RowMode::kRows : RowMode::kLayers;
    const TapNet net = testing::zoo_net(small_spec("resnet8", width), share);
    expect_checked(net, mode, share);
    expect_checked(testing::quantized(net, 1), mode, std::string("int8 ") + share);
    width = 10 - width;
  }
}

TEST(CProject, NetworksOfTheZooPassTheirSelfTests) {
  const std::pair<const char*, const char*> networks[] = {
      {"resnet20", "4x4"},     {"resnet50-cifar", "4"},  {"resnet-w", "4x4-drop"}, {"shiftresnet20", "dense"},
      {"shiftnet-b", "dense"}, {"mobilenetv2", "dense"}, {"squeezenet", "dense"},  {"asresnet20", "dense"}};
  for (const auto& [arch, share] : networks) {
    TapNet net = testing::zoo_net(small_spec(arch, 4), share);
    active_shifts_to_convs(net);
    expect_checked(net, RowMode::kRows, arch);
    expect_checked(testing::quantized(net, 1), RowMode::kRows, std::string("int8 ") + arch);
  }
}

TEST(CProject, NetworksWithReLU6PassTheirSelfTests) {
  TapNet net = random_tap_net(
      parse_network("onetap-net 1\nx = input 3x9x9\na = conv x out=8 kernel=3 stride=2 pad=1 bias=1\nb = relu6 a\n"
                    "c = conv b out=8 kernel=3 pad=1 groups=8 bias=1\nd = relu6 c\ne = conv d out=6 bias=1\n"
                    "p = gap e\nfc = linear p out=5\noutput fc\n"),
      1);
  for (size_t i = 0; i < net.layers.at("a").weight.count(); ++i) net.layers.at("a").weight.data<float>()[i] *= 20;
  for (const RowMode mode : {RowMode::kRows, RowMode::kLayers}) {
    expect_checked(net, mode, "relu6");
    expect_checked(testing::quantized(net, 1), mode, "int8 relu6");
  }
}

TEST(CProject, ReadsNothingThatWasNotWritten) {
  if (!has_program("valgrind")) GTEST_SKIP() << "no valgrind";
  for (const char* share : {"dense", "1", "4x4-drop"}) {
    const TapNet net = testing::zoo_net(small_spec("resnet8", 4), share);
    expect_checked(net, RowMode::kRows, share, true);
    expect_checked(testing::quantized(net, 1), RowMode::kRows, std::string("int8 ") + share, true);
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

TEST(CProject, SizesWithoutTextAreThoseOfTheText) {
  for (const uint64_t seed : {1, 2, 3}) {
    const TapNet net = testing::random_int8_net(seed);
    const CSizes text = project_of(net, RowMode::kRows).sizes, sizes = c_sizes(net, RowMode::kRows);
    EXPECT_EQ(sizes.weights, text.weights);
    EXPECT_EQ(sizes.flash(), text.flash());
    EXPECT_EQ(sizes.largest().bytes(), text.largest().bytes());
    EXPECT_EQ(sizes.stack, text.stack);
    EXPECT_EQ(sizes.arena, text.arena);
  }
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
  const auto named = [&](const char* name) {
    CProjectOptions options;
    options.name = name;
    c_project(net, options, golden_of(net));
  };
  for (const char* name : {"", "1net", "my-net", "a b", "for", "n\xc3\xa4t"}) {
    expect_error(ErrorKind::kUsage, "C identifier", [&] { named(name); });
  }
  for (const char* name :
       {"test", "all", "help", "clean", "install", "string", "stdint", "features", "debug", "PUBLIC"}) {
    expect_error(ErrorKind::kUsage, "that neither CMake nor C uses", [&] { named(name); });
  }
  const auto sizes_of = [](const std::string& nodes, const char* shape = "3x8x8", RowMode mode = RowMode::kRows) {
    return c_sizes(random_tap_net(parse_network(fmt::format("onetap-net 1\nx = input {}\n{}", shape, nodes)), 1), mode);
  };
  expect_error(ErrorKind::kUsage, "got silu ('a')", [&] { sizes_of("a = silu x\n"); });
  expect_error(ErrorKind::kUsage, "at most 255 positions, and strides, pads and dilations up to it, got 256 ('c')",
               [&] { sizes_of("c = conv x out=2 kernel=16 pad=8\n"); });
  expect_error(ErrorKind::kUsage, "an input and an output of at most 2147483647 bytes, got 14400000000 ('x')",
               [&] { sizes_of("p = gap x\n", "1x60000x60000"); });
  std::string relus = "a = relu x\n";
  for (int i = 0; i < 20; ++i) relus += fmt::format("a{} = relu {}\n", i, i == 0 ? "a" : fmt::format("a{}", i - 1));
  expect_error(ErrorKind::kUsage, "at most 1048576 rows of all layers and what they read, got 2700000",
               [&] { sizes_of(relus, "1x60000x1"); });
  const std::string wide = "c = conv x out=60000\np = gap c\nf = linear p out=1\n";
  expect_error(ErrorKind::kUsage, "at most 2147483647 bytes of RAM, got 9600240000 (most is in use around layer 'c')",
               [&] { sizes_of(wide, "1x200x200", RowMode::kLayers); });
  EXPECT_LT(sizes_of(wide, "1x200x2").arena, 1 << 30);
  // The memory of the other schedule is nobody's limit.
  const TapNet tall = random_tap_net(
      parse_network("onetap-net 1\nx = input 1x200x200\nc = conv x out=60000\nd = conv c out=1\np = gap d\n"), 1);
  EXPECT_GT(CProgram(tall, RowMode::kLayers).arena_bytes, int64_t{1} << 31);
  EXPECT_LT(c_sizes(tall, CProgram(tall, RowMode::kRows)).arena, int64_t{1} << 30);
}

// Values (16 bytes), steps (20, and 4 for each input), and a list of rows: a byte for each of the four of every step as
// long as a byte can name all steps.
TEST(CProject, CountsTheListOfRows) {
  const auto tables = [](int64_t relus) {
    std::string text = "onetap-net 1\nx = input 1x4x4\nr1 = relu x\n";
    for (int64_t i = 2; i <= relus; ++i) text += fmt::format("r{} = relu r{}\n", i, i - 1);
    return c_sizes(random_tap_net(parse_network(text), 1), RowMode::kRows).other;
  };
  const auto by_hand = [](int64_t relus, int64_t row) {
    return 16 * (relus + 2) + 20 * (relus + 2) + 4 * (relus + 1) + 4 * row * (relus + 2);
  };
  EXPECT_EQ(tables(3), by_hand(3, 1));
  EXPECT_EQ(tables(253), by_hand(253, 1));
  EXPECT_EQ(tables(254), by_hand(254, 2));
}

// Places of taps are those of convolutions.
TEST(CProject, AWindowOfAPoolTakesNoStack) {
  const auto stack = [](int pool, int kernel) {
    const std::string text =
        fmt::format("onetap-net 1\nx = input 3x8x8\nc = conv x out=2 kernel={} pad={}\np = avgpool c kernel={}\n",
                    kernel, kernel / 2, pool);
    return c_sizes(random_tap_net(parse_network(text), 1), RowMode::kRows).stack;
  };
  EXPECT_EQ(stack(8, 1), stack(2, 1));
  EXPECT_EQ(stack(2, 3), stack(2, 1) + 8 * 2 * 4);  // 8 positions more, of two pixels
}

// A mean's floats leave where a step is so small that the processor takes it for 0.
TEST(CProject, MeansOfTinyStepsLeaveFloats) {
  if (!has_program("gcc")) GTEST_SKIP() << "no gcc";
  for (const char* op : {"gap x", "avgpool x kernel=8"}) {
    TapNet net;
    net.graph = parse_network(fmt::format("onetap-net 1\nx = input 1x8x8\np = {}\noutput p\n", op));
    net.value_scales = {{"x", std::numeric_limits<float>::min()}};
    const TempDir folder;
    write_project(folder.path(), project_of(net, RowMode::kRows));
    write_text(folder / "check.c", R"(#include "net.h"
static float in[NET_INPUTS];
int main(void) {
  float out = 7.0f;
  static float arena[NET_ARENA_BYTES / 4 + 1];
  for (int i = 0; i < NET_INPUTS; ++i) in[i] = 1.0f;
  net_run(in, &out, arena);
  return out < 1.0f ? 0 : 1;
}
)");
    const std::string program = (folder / "check").string();
    // -ffast-math: numbers that are not normal become 0.
    ASSERT_EQ(exit_code(fmt::format("cd {} && gcc -O1 -ffast-math check.c net.c net_weights.c -o check",
                                    folder.path().string())),
              0);
    EXPECT_EQ(exit_code(program), 0) << op;
  }
}

}  // namespace
}  // namespace onetap
