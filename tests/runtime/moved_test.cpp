// Shifts, active shifts, folded shifts, binary weights and depthwise convolutions in whole networks: sessions against
// the reference executor, on every target.
#include "onetap/graph/tap_layout.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session.h"
#include "onetap/tap/moved_kernel.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {
namespace {

using testing::random_floats;

// The network with random tensors; `change` may set some.
TapNet moved_network(const std::string& nodes, uint64_t seed = 1) {
  return random_tap_net(frozen_form(parse_network("onetap-net 1\n" + nodes)).graph, seed);
}

void expect_equals_reference(const TapNet& net, const std::string& what, const ModelOptions& options = {},
                             const SessionOptions& session = {}) {
  Random random(3, Purpose::kTest, 6);
  const auto x = random_floats(static_cast<size_t>(element_count(net.graph.input().shape)), random);
  const std::vector<float> expected = run_reference(net, x.data());
  std::vector<float> got(expected.size(), -1.0f);
  Session(std::make_shared<const Model>(net, options), session).run(x.data(), 1, got.data());
  float scale = 1e-30f;
  for (const float value : expected) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 1e-5f * scale) << what << " at " << i << ", target " << options.target;
  }
}

void on_every_target(const TapNet& net, const std::string& what) {
  for (const KernelSet* kernels : kernel_sets()) {
    ModelOptions options;
    options.target = kernels->name;
    expect_equals_reference(net, what, options);
    expect_equals_reference(net, what + " in three threads", options, {3, 1});
    options.dense = true;
    expect_equals_reference(net, what + " dense", options);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Moved, ShiftsEqualTheReference) {
  for (const int64_t width : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33}) {
    for (const char* attributes : {"kernel=1", "kernel=3", "kernel=3 dilation=2", "kernel=5", "kernel=1x7",
                                   "kernel=63 dilation=64", "kernel=3 counts=4,0,3,2,1,0,0,9,1"}) {
      // Between ReLUs, so that it stays a shift, and from values with gaps between planes.
      const std::string text =
          "x = input 20x6x" + std::to_string(width) + "\na = relu x\ny = shift a " + attributes + "\nz = relu y\n";
      on_every_target(moved_network(text), text);
      if (HasFatalFailure()) return;
    }
  }
}

// Straight from the caller's image, whose planes have no gaps and end where they end.
TEST(Moved, ActiveShiftsEqualTheReference) {
  for (const int64_t width : {1, 3, 8, 9, 16, 17, 33}) {
    for (const int64_t stride : {1, 2, 3}) {
      const std::string text = "x = input 9x7x" + std::to_string(width) +
                               "\ny = activeshift x stride=" + std::to_string(stride) +
                               "\nz = conv y out=4\nw = add z z\n";
      TapNet net = moved_network(text, static_cast<uint64_t>(width));
      on_every_target(net, text);
      // Whole pixels, the edges of the image, and places that no image has.
      const std::vector<float> by = {0,      1,      -1,      0,    2.5f,  -3,    6,      -6,    6.5f,
                                     -6.99f, 1e-10f, -1e-10f, 1e9f, -1e9f, 3e38f, -3e38f, 0.25f, 1e30f};
      std::copy(by.begin(), by.end(), net.layers["y"].weight.data<float>());
      on_every_target(net, text + "special shifts");
      if (HasFatalFailure()) return;
    }
  }
}

// As convolutions, which int8 networks and generated C have in their place.
TEST(Moved, ActiveShiftsAreDepthwiseConvolutions) {
  for (const int64_t stride : {1, 2, 3}) {
    const std::string text = "x = input 9x7x12\ny = activeshift x stride=" + std::to_string(stride) + "\nz = relu y\n";
    TapNet net = moved_network(text);
    const std::vector<float> by = {0,      1,    -1,    0,     2.5f,  -3, 6, -6,    6.5f,
                                   -6.99f, 1e9f, -1e9f, 0.25f, 1e30f, 0,  0, -0.5f, 0.5f};
    for (const bool near : {false, true}) {
      // Taps of far ones do not fit into a small kernel.
      for (size_t i = 0; i < by.size(); ++i) {
        net.layers["y"].weight.data<float>()[i] = near ? std::remainder(by[i], 2.0f) : by[i];
      }
      TapNet convs = net;
      active_shifts_to_convs(convs);
      const Node& conv = convs.graph.node("y");
      EXPECT_EQ(conv.op, Op::kTapConv);
      EXPECT_EQ(conv.groups, 9);
      EXPECT_LE(tap_layout(convs.graph, conv).taps, 4);
      check_tap_net(convs);
      std::vector<float> image(9 * 7 * 12);
      Random random(7, Purpose::kTest);
      for (float& pixel : image) pixel = random.uniform(-1, 1);
      const std::vector<float> expected = run_reference(net, image.data()), got = run_reference(convs, image.data());
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6) << stride << ' ' << i;
    }
  }
}

TEST(Moved, ActiveShiftsThatKernelsDoNotReachAreErrors) {
  TapNet net = moved_network("x = input 2x40x40\ny = activeshift x\n");
  std::vector<float> by = {31, -31, 0, 0};
  std::copy(by.begin(), by.end(), net.layers["y"].weight.data<float>());
  TapNet convs = net;
  active_shifts_to_convs(convs);
  EXPECT_EQ(convs.graph.node("y").kernel, (Extent2{63, 63}));
  net.layers["y"].weight.data<float>()[1] = -31.5f;
  testing::expect_error(ErrorKind::kData, "[tap] expected active shifts of at most 31 pixels, got one of 32 ('y')",
                        [&] { active_shifts_to_convs(net); });
  net.layers["y"].weight.data<float>()[1] = -1e9f;  // outside of the image: nothing is left of the channel
  active_shifts_to_convs(net);
}

// A NaN goes where it goes in the reference: a neighbour of weight 0 does not bring it.
TEST(Moved, NaNGoesWhereItGoesInTheReference) {
  TapNet net = moved_network("x = input 2x5x18\ny = activeshift x\n");
  const std::vector<float> by = {1, -2, 0.5f, 0};
  std::copy(by.begin(), by.end(), net.layers["y"].weight.data<float>());
  std::vector<float> image(2 * 5 * 18, 1.0f);
  image[20] = image[90 + 40] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> expected = run_reference(net, image.data());
  EXPECT_EQ(std::count_if(expected.begin(), expected.end(), [](float v) { return std::isnan(v); }), 1 + 2);
  for (const KernelSet* kernels : kernel_sets()) {
    std::vector<float> got(expected.size());
    ModelOptions options;
    options.target = kernels->name;
    Session(std::make_shared<const Model>(net, options)).run(image.data(), 1, got.data());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << i;
  }
}

// A shift that went into its convolution computes what the two compute: the same weights, the shift's positions.
TEST(Moved, AFoldedShiftIsTheShiftAndTheConvolution) {
  for (const char* shift : {"kernel=3", "kernel=5 dilation=2", "kernel=3x1", "kernel=1"}) {
    for (const int64_t stride : {1, 2}) {
      const std::string head = "onetap-net 1\nx = input 11x9x13\ns = shift x " + std::string(shift);
      const Graph trained = parse_network(head + "\nc = conv s out=6 bias=1 stride=" + std::to_string(stride) + "\n");
      const FrozenForm form = frozen_form(trained);
      ASSERT_EQ(form.graph.node("c").op, Op::kTapConv);
      TapNet apart = random_tap_net(trained, 5);
      TapNet folded;
      folded.graph = form.graph;
      LayerTensors& tensors = folded.layers["c"];
      tensors = apart.layers["c"];
      const auto* weight = tensors.weight.data<float>();
      tensors.weight = Tensor::of<float>({weight, weight + 66}, {6, 11, 1});
      tensors.positions = form.shifted.at("c");
      Random random(4, Purpose::kTest, 6);
      const auto x = random_floats(11 * 9 * 13, random);
      EXPECT_EQ(run_reference(folded, x.data()), run_reference(apart, x.data())) << shift << " stride " << stride;
      on_every_target(folded, std::string(shift) + " folded");
      on_every_target(apart, std::string(shift) + " apart");
      if (HasFatalFailure()) return;
      // And costs no copies: one multiply-add an input, output and pixel.
      EXPECT_EQ(Model(folded).macs(), 6 * 11 * element_count(form.graph.node("c").shape) / 6);
    }
  }
}

TEST(Moved, BinaryLayersEqualTheReference) {
  on_every_target(
      moved_network("x = input 5x9x10\na = conv x out=8 kernel=3 pad=1 bias=1 method=binary\nb = relu a\n"
                    "c = conv b out=7 stride=2 method=binary\ng = gap c\nf = linear g out=4 method=binary\n"),
      "binary");
}

// As MobileNetV2 has them: expansion, depthwise with strides, projection, sum.
TEST(Moved, DepthwiseBlocksEqualTheReference) {
  for (const int64_t side : {5, 8, 14, 32}) {
    on_every_target(
        moved_network(
            "x = input 3x" + std::to_string(side) + "x" + std::to_string(side) +
            "\na = conv x out=24 bias=1\nar = relu a\nd = conv ar out=24 kernel=3 pad=1 groups=24 bias=1\n"
            "s = add d ar\nr = relu s\ne = conv r out=48 kernel=3 stride=2 pad=1 groups=24\n"
            "f = tapconv e out=48 kernel=5 pad=2 groups=48 taps=3\nh = conv f out=12 kernel=3 groups=12 pad=1\n"
            "i = conv h out=24 kernel=3 groups=6 pad=1 bias=1\ng = gap i\n"),
        "side " + std::to_string(side));
    if (HasFatalFailure()) return;
  }
}

TEST(Moved, NetworksOfTheRivalsEqualTheReference) {
  const struct {
    const char* arch;
    int64_t width;
  } rows[] = {{"shiftresnet20", 9}, {"asresnet", 9}, {"mobilenetv2", 4}, {"squeezenet", 12}};
  for (const auto& row : rows) {
    NetSpec spec;
    spec.arch = row.arch;
    spec.width = row.width;
    expect_equals_reference(random_tap_net(frozen_form(build_network(spec)).graph, 2), row.arch, {}, {2, 1});
  }
}

TEST(Moved, ThreadsChangeNothing) {
  const auto model = std::make_shared<const Model>(
      moved_network("x = input 30x17x17\na = conv x out=30 kernel=3 pad=1 groups=30\nb = activeshift a stride=2\n"));
  Random random(3, Purpose::kTest, 6);
  const auto x = random_floats(30 * 17 * 17, random);
  std::vector<float> one(30 * 9 * 9);
  Session(model).run(x.data(), 1, one.data());
  for (const int64_t threads : {2, 3, 5}) {
    std::vector<float> got(one.size());
    Session(model, {threads, 1}).run(x.data(), 1, got.data());
    EXPECT_EQ(got, one) << threads << " threads";
  }
}

TEST(Moved, CostsAreCounted) {
  const Model model(moved_network(
      "x = input 16x8x8\ns = shift x kernel=3\na = relu s\nd = conv a out=32 kernel=3 pad=1 groups=16\n"));
  EXPECT_EQ(model.macs(), 32 * 9 * 64);  // a shift multiplies nothing
  EXPECT_EQ(model.dense_macs(), model.macs());
  EXPECT_GE(model.weight_bytes(), 32 * 9 * 4);
  // A shift of 4096x4096 pixels: two values of 64 MiB, more than a limit of 100.
  ModelOptions options;
  options.memory_limit = 100 << 20;
  testing::expect_error(ErrorKind::kUsage, "runs in 100.00 MiB", [&] {
    Model(moved_network("x = input 1x4096x4096\ny = shift x kernel=3\nz = relu y\n"), options);
  });
  // One far shift makes every padded plane larger than the image: scratch counts.
  TapNet far = moved_network("x = input 1x1024x1024\ny = activeshift x\n");
  far.layers["y"].weight = Tensor::of<float>({1000, -1000}, {1, 2});
  options.memory_limit = 20 << 20;
  testing::expect_error(ErrorKind::kUsage, "scratch of layer 'y'", [&] { Model(far, options); });
}

}  // namespace
}  // namespace onetap
