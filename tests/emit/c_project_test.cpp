// Generated C, compiled and run: what its self-test says, and what it computes on inputs of its own.
#include "onetap/emit/c_project.h"

#include "onetap/base/fail.h"
#include "onetap/emit/c_program.h"
#include "onetap/emit/dense_form.h"
#include "onetap/graph/text.h"
#include "onetap/runtime/session.h"
#include "onetap/tap/moved_kernel.h"
#include "tests/emit/zoo_net.h"
#include "tests/quant/random_int8_net.h"
#include "tests/support/support.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
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

CProject project_of(const TapNet& net, RowMode mode, CInput input = CInput::kFloats) {
  CProjectOptions options;
  options.name = "net";
  options.mode = mode;
  options.input = input;
  return c_project(net, options, golden_of(net, input));
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
#ifdef NET_TAKES_PIXELS
typedef uint8_t input;
#define NUMBER(i) (uint8_t)(37 * i % 256)
#else
typedef float input;
#define NUMBER(i) (float)(i % 37 - 18) / 9.0f
#endif
static float out[3][NET_OUTPUTS];
int main(void) {
  const int failed = net_selftest();
  input* in = malloc(NET_INPUTS * sizeof *in);
  long high = -1;
  if (failed != 0) return printf("the self-test returns %d\n", failed), 1;
  if (in == NULL) return 2;
  for (int i = 0; i < NET_INPUTS; ++i) in[i] = NUMBER(i);
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
  free(in);
  if (high / 4 != (NET_ARENA_BYTES - 1) / 4) return printf("the last byte written is %ld\n", high), 1;
  return 0;
}
)";

// Neither compiler warns, and self-test and check pass: under gcc's sanitizers, or under Valgrind.
void expect_checked(const TapNet& net, RowMode mode, const std::string& what, bool valgrind = false,
                    CInput input = CInput::kFloats) {
  const TempDir folder;
  write_project(folder.path(), project_of(net, mode, input));
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

// Reads images of bytes, one after the other, and writes what the network makes of them.
constexpr const char* kFilter = R"(#include "net.h"
#include <stdio.h>
static uint8_t in[NET_INPUTS];
static float out[NET_OUTPUTS];
static uint32_t arena[NET_ARENA_BYTES / 4 + 1];
int main(void) {
  while (fread(in, 1, NET_INPUTS, stdin) == NET_INPUTS) {
    net_run(in, out, arena);
    if (fwrite(out, sizeof out, 1, stdout) != 1) return 1;
  }
  return 0;
}
)";

// Every value of a pixel in order, then random ones.
std::vector<uint8_t> pixel_images(const TapNet& net, int64_t count) {
  const int64_t inputs = element_count(net.graph.input().shape);
  Random random(7, Purpose::kTest);
  std::vector<uint8_t> images;
  for (int64_t i = 0; i < count * inputs; ++i) {
    images.push_back(static_cast<uint8_t>(i < inputs ? static_cast<uint32_t>(i % 256) : random.below(256)));
  }
  return images;
}

std::vector<float> session_outputs(const TapNet& net, const std::vector<uint8_t>& images, int64_t count) {
  Session session(std::make_shared<const Model>(net));
  std::vector<float> outputs(static_cast<size_t>(count * session.model().output_floats()));
  session.run_pixels(images.data(), count, outputs.data());
  return outputs;
}

std::vector<float> generated_outputs(const TapNet& net, const std::vector<uint8_t>& images) {
  const TempDir folder;
  write_project(folder.path(), project_of(net, RowMode::kRows, CInput::kPixels));
  write_text(folder / "filter.c", kFilter);
  write_text(folder / "images", std::string(images.begin(), images.end()));
  EXPECT_EQ(exit_code(fmt::format("cd {} && gcc {} -O1 filter.c net.c net_weights.c -o filter && "
                                  "./filter <images >outputs",
                                  folder.path().string(), kStrict)),
            0);
  const std::string bytes = read_text(folder / "outputs");
  std::vector<float> outputs(bytes.size() / sizeof(float));
  std::memcpy(outputs.data(), bytes.data(), outputs.size() * sizeof(float));
  return outputs;
}

// The self-test and the check pass, and images of pixels give what a session gives: the same bytes in int8, and in
// floats the same but for the order of sums.
void expect_pixels_checked(const TapNet& net, const std::string& what) {
  constexpr int64_t kImages = 5;
  expect_checked(net, RowMode::kRows, what, false, CInput::kPixels);
  if (!has_program("gcc")) return;
  const std::vector<uint8_t> images = pixel_images(net, kImages);
  const std::vector<float> expected = session_outputs(net, images, kImages), got = generated_outputs(net, images);
  ASSERT_EQ(got.size(), expected.size()) << what;
  if (net.is_int8()) {
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << what;
    return;
  }
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4f * largest) << what << ", output " << i;
}

TapNet text_net(const std::string& text, const PixelScale& pixels = testing::kPixels) {
  TapNet net = random_tap_net(parse_network("onetap-net 1\n" + text), 1);
  net.pixels = pixels;
  return net;
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

TEST(CProject, PixelsGiveWhatASessionMakesOfThem) {
  for (const char* share : {"dense", "1", "4x4", "4x4-drop"}) {
    TapNet net = testing::zoo_net(small_spec("resnet8", 4), share);
    net.pixels = testing::kPixels;
    expect_pixels_checked(net, share);
    expect_pixels_checked(testing::quantized(net, 1), std::string("int8 ") + share);
  }
}

TEST(CProject, PixelsOfRandomNetworksGiveWhatASessionMakesOfThem) {
  for (uint64_t seed = 0; seed < testing::sweep_cases(4); ++seed) {
    TapNet net = testing::random_net(seed);
    net.pixels = testing::kPixels;
    expect_pixels_checked(net, "seed " + std::to_string(seed));
    expect_pixels_checked(testing::quantized(net, seed), "int8 seed " + std::to_string(seed));
  }
}

// One channel, channels that share their table or the last one's, vectors, and pixels that leave as they came.
TEST(CProject, PixelsOfEveryShapeGiveWhatASessionMakesOfThem) {
  const std::string conv = "c = conv x out=6 kernel=3 pad=1\nr = relu c\np = gap r\nf = linear p out=3\n";
  const PixelScale equal{{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}, wide{{0.5f, 0.1f, 2.0f}, {0.01f, 100.0f, 3e-5f}};
  const std::pair<std::string, PixelScale> networks[] = {{"x = input 1x16x16\n" + conv, testing::kPixels},
                                                         {"x = input 2x16x17\n" + conv, testing::kPixels},
                                                         {"x = input 5x16x16\n" + conv, testing::kPixels},
                                                         {"x = input 4x16x16\n" + conv, equal},
                                                         {"x = input 3x16x16\n" + conv, wide},
                                                         {"x = input 300\nf = linear x out=7\n", testing::kPixels},
                                                         {"x = input 3x16x16\nr = relu x\n", testing::kPixels}};
  for (const auto& [text, pixels] : networks) {
    const TapNet net = text_net(text, pixels);
    expect_pixels_checked(net, text);
    expect_pixels_checked(testing::quantized(net, 1), "int8 " + text);
  }
}

TEST(CProject, CountsTheTablesOfPixels) {
  const auto tables = [](const TapNet& net, CInput input) {
    return c_sizes(net, CProgram(net, RowMode::kRows, input)).other;
  };
  const auto more = [&](const TapNet& net) { return tables(net, CInput::kPixels) - tables(net, CInput::kFloats); };
  const auto bytes_of = [](const char* shape, const PixelScale& pixels) {
    return testing::quantized(text_net(fmt::format("x = input {}\nc = conv x out=2\n", shape), pixels), 1);
  };
  EXPECT_EQ(more(bytes_of("1x4x4", testing::kPixels)), 256);
  EXPECT_EQ(more(bytes_of("2x4x4", testing::kPixels)), 2 * 256);
  EXPECT_EQ(more(bytes_of("3x4x4", testing::kPixels)), 3 * 256);
  EXPECT_EQ(more(bytes_of("5x4x4", testing::kPixels)), 3 * 256);
  EXPECT_EQ(more(bytes_of("3x4x4", PixelScale())), 256);
  EXPECT_EQ(more(text_net("x = input 3x4x4\nc = conv x out=2\n")), 6 * 4);  // a factor and an offset by channel
}

TEST(CProject, TheHeaderSaysWhatTheInputIs) {
  const TapNet net = text_net("x = input 3x4x4\nc = conv x out=2\n");
  const auto header = [&](CInput input) { return project_of(net, RowMode::kRows, input).files.at(0).text; };
  const std::string pixels = header(CInput::kPixels), floats = header(CInput::kFloats);
  for (const char* part :
       {"void net_run(const uint8_t* in, float* out, void* arena);", "#include <stdint.h>", "bytes of 0 to 255",
        "#define NET_TAKES_PIXELS 1", "#define NET_INPUTS 48", "#define NET_MEAN {0.500000000f, 0.449999988f"}) {
    EXPECT_NE(pixels.find(part), std::string::npos) << part;
  }
  EXPECT_NE(floats.find("void net_run(const float* in, float* out, void* arena);"), std::string::npos);
  EXPECT_EQ(floats.find("PIXELS"), std::string::npos);
}

TEST(CProject, RefusesPixelsThatItCannotScale) {
  const std::string text = "x = input 3x4x4\nc = conv x out=2\nd = conv c out=2\n";
  const auto pixels_of = [](const TapNet& net) { c_sizes(net, CProgram(net, RowMode::kRows, CInput::kPixels)); };
  expect_error(ErrorKind::kUsage, "that floats can hold, got mean 0.5 and sd 1e-42", [&] {
    pixels_of(text_net(text, {{0, 0.5f, 0}, {1, 1e-42f, 1}}));
  });
  expect_error(ErrorKind::kUsage, "that floats can hold, got mean 1e+30", [&] {
    pixels_of(text_net(text, {{0, 0, 1e30f}, {1, 1, 1e-10f}}));
  });
  // What reads the input in floats, and so its scale is missing; or a later layer.
  for (const char* layer : {"c", "d"}) {
    QuantizeOptions options;
    options.kept = {layer};
    const TapNet net = testing::quantized(text_net(text), 1, options);
    expect_error(ErrorKind::kUsage, fmt::format("got floats ('{}'): quantize it too", layer), [&] { pixels_of(net); });
  }
  const TapNet net = text_net(text);
  CProjectOptions options;
  options.name = "net";
  options.input = CInput::kPixels;
  expect_error(ErrorKind::kFailure, "a golden sample of the program's input",
               [&] { c_project(net, options, golden_of(net)); });
}

TEST(CProject, ReadsNothingThatWasNotWritten) {
  if (!has_program("valgrind")) GTEST_SKIP() << "no valgrind";
  for (const char* share : {"dense", "1", "4x4-drop"}) {
    const TapNet net = testing::zoo_net(small_spec("resnet8", 4), share);
    expect_checked(net, RowMode::kRows, share, true);
    expect_checked(testing::quantized(net, 1), RowMode::kRows, std::string("int8 ") + share, true);
    expect_checked(testing::quantized(net, 1), RowMode::kRows, std::string("int8 pixels ") + share, true,
                   CInput::kPixels);
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
