// int8 networks on the fast kernels: what Int8Reference gives, bit by bit, on every target.
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/runtime/int8_model.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/session.h"
#include "tests/quant/random_int8_net.h"
#include "tests/support/support.h"

#include <cstring>

namespace onetap {
namespace {

using testing::quantized;
using testing::random_image;

void expect_equals_int8_reference(const TapNet& net, const std::string& what, const char* target = "",
                                  const SessionOptions& run = {}, bool dense = false) {
  ModelOptions options;
  options.target = target;
  options.dense = dense;
  const auto model = std::make_shared<const Model>(net, options);
  ASSERT_TRUE(model->is_int8());
  const auto out = static_cast<size_t>(model->output_floats());
  constexpr size_t kImages = 3;
  std::vector<float> images, expected, got(kImages * out, -1e9f);
  for (uint64_t i = 0; i < kImages; ++i) {
    const auto image = random_image(net.graph, 50 + i);
    images.insert(images.end(), image.begin(), image.end());
    const auto outputs = Int8Reference(net).run(image.data());
    expected.insert(expected.end(), outputs.begin(), outputs.end());
  }
  Session session(model, run);
  // Twice: what an image leaves in the arena must not be seen by the next.
  for (int repeat = 0; repeat < 2; ++repeat) session.run(images.data(), kImages, got.data());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], expected[i]) << what << " on " << model->kernels().name << ", output " << i;
  }
}

TapNet quantized_text(const std::string& nodes, const QuantizeOptions& options = {}) {
  const TapNet net = random_tap_net(frozen_form(parse_network("onetap-net 1\n" + nodes)).graph, 3);
  return quantized(net, 7, options);
}

TEST(Int8Session, RandomNetworksEqualTheReferenceOnEveryTarget) {
  const auto& rows = kernel_sets(DType::kI8);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const TapNet net = testing::random_int8_net(seed);
    const char* target = rows[seed % rows.size()]->name;
    expect_equals_int8_reference(net, "seed " + std::to_string(seed), target, {static_cast<int64_t>(seed % 3) + 1, 1},
                                 seed % 5 == 0);
    if (HasFatalFailure()) return;
  }
}

// What random networks may not have: each of these takes a path of its own.
TEST(Int8Session, OpsOfEveryKind) {
  const std::vector<std::string> networks = {
      // Steps behind the output read it.
      "x = input 3x9x11\nc = conv x out=40 kernel=3 pad=1 bias=1\nd = conv c out=6 kernel=3 pad=1\noutput c\n",
      "x = input 3x9x11\nc = conv x out=10 kernel=5 pad=6 bias=1\nr = relu c\noutput r\n",
      "x = input 5x13x9\nc = conv x out=9 kernel=3 stride=3 pad=1\nr = relu c\nd = conv r out=6 kernel=1 "
      "stride=2\noutput d\n",
      "x = input 6x8x8\na = conv x out=6 kernel=3 pad=1\nb = relu a\nm = maxpool a kernel=3 stride=2 pad=1\nn = "
      "maxpool b "
      "kernel=3 stride=2 pad=1\nz = concat m n\nw = conv z out=7 kernel=1\ng = gap w\noutput g\n",
      "x = input 6x8x8\na = conv x out=5 kernel=3 pad=1\nb = conv x out=5 kernel=1\nc = relu a\ns = add a b c\nr = "
      "relu s\np = "
      "avgpool r kernel=3 stride=2 pad=1\nf = flatten p\nl = linear f out=7\nq = relu l\nm = linear q out=3\noutput "
      "m\n",
      "x = input 9x7x7\ns = shift x kernel=3\nc = conv s out=9 kernel=1\nr = relu c\nt = shift r kernel=7 "
      "dilation=2\nd = conv "
      "t out=4 kernel=1\noutput d\n",
      "x = input 4x6x6\nc = conv x out=8 kernel=3 pad=1 groups=2\nr = relu c\nd = conv r out=8 kernel=3 pad=1 "
      "groups=8\ne = relu "
      "d\ns = subsample e out=18 stride=2\nv = conv s out=3 kernel=1\noutput v\n",
      "x = input 8x6x6\nc = conv x out=8 kernel=3 pad=1\ns = subsample c out=16 stride=2\nr = relu s\nm = maxpool r "
      "kernel=2 "
      "stride=2\noutput m\n",
  };
  for (const std::string& text : networks) {
    const TapNet net = quantized_text(text);
    for (const KernelSet* row : kernel_sets(DType::kI8)) {
      expect_equals_int8_reference(net, text, row->name, {2, 1});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Int8Session, NetworksOfTheZooEqualTheReference) {
  const struct {
    const char* arch;
    int64_t width;
  } rows[] = {{"resnet20", 8}, {"shiftresnet20", 9}, {"mobilenetv2", 4}, {"squeezenet", 12}};
  for (const auto& row : rows) {
    NetSpec spec;
    spec.arch = row.arch;
    spec.width = row.width;
    const TapNet floats = random_tap_net(frozen_form(build_network(spec)).graph, 2);
    expect_equals_int8_reference(quantized(floats, 1), row.arch);
  }
}

// Every way in which slices share their positions.
TEST(Int8Session, EveryShareEqualsTheReference) {
  for (const char* share : {"1", "2", "4", "4x4", "8x4", "all"}) {
    for (const bool dense : {false, true}) {
      const TapNet net =
          quantized_text(std::string("x = input 8x16x16\nc = conv x out=22 kernel=3 pad=1 method=sal share=") + share +
                         "\nr = relu c\nd = conv r out=22 kernel=3 stride=2 pad=1 method=sal share=" + share +
                         "\ng = gap d\noutput g\n");
      expect_equals_int8_reference(net, share, "", {}, dense);
    }
  }
}

TEST(Int8Session, ThreadsAndBatchesDoNotChangeTheBytes) {
  const TapNet net = quantized_text(
      "x = input 3x33x33\nc = conv x out=24 kernel=3 pad=1\nr = relu c\nd = conv r out=24 kernel=3 pad=1\ns = add d "
      "r\nt = relu "
      "s\ne = conv t out=40 kernel=3 stride=2 pad=1\nu = relu e\ng = gap u\nl = linear g out=10\noutput l\n");
  for (const SessionOptions& options : {SessionOptions{1, 1}, SessionOptions{3, 1}, SessionOptions{2, 8}}) {
    expect_equals_int8_reference(net, "threads " + std::to_string(options.threads), "", options);
  }
}

// Floats add up in another order than the reference's, and a result near the middle of two bytes may then fall on the
// other.
TEST(Int8Session, LayersKeptInFloatsAreCloseToTheReference) {
  const std::string text =
      "x = input 3x12x12\nc = conv x out=8 kernel=3 pad=1\nr = relu c\nd = conv r out=8 kernel=3 pad=1\ns = add d r\nt "
      "= relu "
      "s\ng = gap t\nl = linear g out=5\noutput l\n";
  for (const std::set<std::string>& kept : {std::set<std::string>{"c"}, {"d"}, {"l"}, {"c", "d", "l"}}) {
    QuantizeOptions options;
    options.kept = kept;
    const TapNet net = quantized_text(text, options);
    const auto image = random_image(net.graph, 9);
    const auto expected = Int8Reference(net).run(image.data());
    std::vector<float> got(expected.size());
    Session(std::make_shared<const Model>(net)).run(image.data(), 1, got.data());
    float size = 0;
    for (const float value : expected) size = std::max(size, std::abs(value));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.02f * size) << *kept.begin();
  }
}

TEST(Int8Session, PixelsGiveWhatTheirFloatsGive) {
  TapNet net = quantized_text("x = input 3x10x9\nc = conv x out=8 kernel=3 pad=1\nr = relu c\ng = gap r\noutput g\n");
  net.pixels = {{0.5f, 0.25f, 0.4f}, {0.3f, 0.2f, 0.7f}};
  TapNet floats = random_tap_net(net.graph, 4);
  floats.pixels = net.pixels;
  Random random(5, Purpose::kTest);
  constexpr size_t kImages = 3, kPixels = 3 * 10 * 9;
  std::vector<uint8_t> pixels;
  std::vector<float> images;
  for (size_t i = 0; i < kImages * kPixels; ++i) {
    pixels.push_back(static_cast<uint8_t>(random.below(256)));
    const size_t channel = i % kPixels / 90;
    images.push_back(static_cast<float>((pixels.back() / 255.0 - static_cast<double>(net.pixels.mean[channel])) /
                                        static_cast<double>(net.pixels.sd[channel])));
  }
  for (const TapNet* each : {&net, &floats}) {
    for (const SessionOptions& options : {SessionOptions{1, 1}, SessionOptions{2, 2}}) {
      Session session(std::make_shared<const Model>(*each), options);
      std::vector<float> expected(kImages * 8), got(kImages * 8);
      session.run(images.data(), kImages, expected.data());
      session.run_pixels(pixels.data(), kImages, got.data());
      EXPECT_EQ(got, expected);
    }
  }
}

TEST(Int8Session, TheMemoryLimitCounts) {
  const TapNet net =
      quantized_text("x = input 3x64x64\nc = conv x out=64 kernel=3 pad=1\nr = relu c\ng = gap r\noutput g\n");
  ModelOptions options;
  options.memory_limit = 200 << 10;
  testing::expect_error(ErrorKind::kUsage, "values around layer 'c'", [&] { Model(net, options); });
  options.memory_limit = 4 << 20;
  EXPECT_NO_THROW(Model(net, options));
}

}  // namespace
}  // namespace onetap
