// The int8 kernels of every target against the integer reference: the same bytes, whatever the shape.
#include "onetap/kernels/int8_conv.h"
#include "onetap/kernels/int8_reference.h"
#include "onetap/kernels/reference.h"
#include "tests/kernels/conv_case.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>

namespace onetap {
namespace {

using testing::random_conv_case;
using testing::uniform_positions;

class Int8Kernel : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const Int8Kernels& kernels() const { return *GetParam()->int8; }
};

struct Picker {
  Random random;

  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.below(static_cast<uint32_t>(high - low + 1)));
  }
  DType type() { return random.coin() ? DType::kU8 : DType::kI8; }
  std::vector<std::byte> bytes(int64_t count, DType type) {
    std::vector<std::byte> list;
    // Extremes are as frequent as all the rest.
    for (int64_t i = 0; i < count; ++i) {
      const int64_t least = least_byte(type), most = most_byte(type);
      list.push_back(static_cast<std::byte>(random.coin() ? pick(least, most) : random.coin() ? least : most));
    }
    return list;
  }
  std::vector<int8_t> weights(int64_t count) {
    std::vector<int8_t> list;
    for (int64_t i = 0; i < count; ++i) list.push_back(static_cast<int8_t>(random.coin() ? pick(-127, 127) : 127));
    return list;
  }
};

// Planes without gaps into quads, with rubbish where nothing should be read for its value.
std::vector<uint8_t> to_quads(const QuadLayout& layout, DType type, const std::vector<std::byte>& planes,
                              int64_t skew = 0) {
  std::vector<uint8_t> quads(static_cast<size_t>(layout.bytes() + skew), 0xA5);
  clear_borders(layout, zero_byte(type), 0, layout.quads(), quads.data() + skew);
  size_t from = 0;
  for (int64_t c = 0; c < layout.channels; ++c) {
    for (int64_t row = 0; row < layout.height; ++row) {
      for (int64_t column = 0; column < layout.width; ++column) {
        const int64_t to = skew + c / kQuad * layout.quad_bytes() + layout.pixel(row, column) + c % kQuad;
        quads[static_cast<size_t>(to)] = static_cast<uint8_t>(static_cast<uint8_t>(planes[from++]) + zero_byte(type));
      }
    }
  }
  return quads;
}

// The other way; and every pixel of the border must be a zero.
std::vector<std::byte> from_quads(const QuadLayout& layout, DType type, const uint8_t* quads) {
  std::vector<std::byte> planes;
  for (int64_t c = 0; c < layout.channels; ++c) {
    const uint8_t* quad = quads + c / kQuad * layout.quad_bytes();
    for (int64_t row = -layout.border_h; row < layout.height + layout.border_h; ++row) {
      for (int64_t column = 0; column < layout.pitch(); ++column) {
        const uint8_t byte = quad[layout.pixel(row, column) + c % kQuad];
        if (row >= 0 && row < layout.height && column < layout.width) {
          planes.push_back(static_cast<std::byte>(byte - zero_byte(type)));
        } else {
          EXPECT_EQ(byte, zero_byte(type)) << "border at " << row << ", " << column;
        }
      }
    }
  }
  return planes;
}

struct Int8ConvCase {
  testing::ConvCase conv;  // shape, residual
  Int8ConvLayouts layouts;
  bool dense = false;
  bool coarse = false;  // shifts of 32 in any case
  int64_t threads = 1;
  int64_t skew = 0;

  std::string text() const {
    return conv.text() + " x " + dtype_name(layouts.x_type) + " y " + dtype_name(layouts.y_type) + " borders " +
           std::to_string(layouts.x.border_h) + "x" + std::to_string(layouts.x.border_w) + " " +
           std::to_string(layouts.y.border_h) + "x" + std::to_string(layouts.y.border_w) + (dense ? " dense" : "") +
           " threads " + std::to_string(threads);
  }
};

Int8ConvCase random_case(uint64_t seed) {
  Int8ConvCase c;
  c.conv = random_conv_case(seed);
  const ConvShape& s = c.conv.shape;
  Picker picker{Random(seed, Purpose::kTest, 20)};
  // Often as networks have it: the same border around input and result, as wide as the padding.
  const bool usual = picker.random.coin();
  const int64_t border = usual ? std::min(kMaxBorder, std::max(s.padding_h, s.padding_w)) : 0;
  c.layouts.x = {s.in, s.in_h, s.in_w, border, border};
  c.layouts.y = {s.out, s.out_h(), s.out_w(), border, border};
  if (!usual) {
    c.layouts.x.border_h = picker.pick(0, 3), c.layouts.x.border_w = picker.pick(0, 3);
    c.layouts.y.border_h = picker.pick(0, 3), c.layouts.y.border_w = picker.pick(0, 3);
  }
  c.layouts.x_type = picker.type();
  c.layouts.y_type = picker.pick(0, 5) == 0 ? DType::kF32 : picker.type();
  if (c.layouts.y_type == DType::kF32) c.conv.residual = false;
  c.layouts.residual_type = picker.type();
  c.dense = picker.pick(0, 5) == 0;
  c.threads = picker.pick(1, 4);
  c.skew = picker.pick(0, 3);
  return c;
}

void expect_conv_matches(const KernelSet& kernels, const Int8ConvCase& c, uint64_t seed) {
  const ConvShape& s = c.conv.shape;
  Picker picker{Random(seed, Purpose::kTest, 21)};
  const int64_t pixels = s.out_h() * s.out_w();
  const auto positions = s.taps > 0 ? uniform_positions(s, picker.random) : std::vector<uint16_t>();
  const auto weight = picker.weights(s.out * s.in_per_group() * s.taps_per_slice());
  const Int8ConvWeights weights{weight.data(), s.taps > 0 ? positions.data() : nullptr};
  std::vector<int32_t> bias, factors;
  std::vector<Requantize> requantize;
  std::vector<float> dequantize;
  const int left_shift = static_cast<int>(picker.random.coin() ? 0 : picker.pick(1, 6));
  const bool has_coarse = picker.pick(0, 4) == 0 || c.coarse;  // a single shift of 32 slows down the whole layer
  for (int64_t d = 0; d < s.out; ++d) {
    bias.push_back(static_cast<int32_t>(picker.pick(-100000, 100000)));
    factors.push_back(static_cast<int32_t>(picker.pick(-(1 << 20), 1 << 20)));
    const int shift = has_coarse && picker.random.coin() ? 32 : static_cast<int>(picker.pick(33, 62));
    requantize.push_back({static_cast<int32_t>((int64_t{1} << 30) + picker.pick(0, (1 << 30) - 1)), shift});
    dequantize.push_back(picker.random.uniform(0.001f, 1));
  }
  const Int8Epilogue epilogue{bias.data(), left_shift, c.conv.residual ? factors.data() : nullptr, requantize.data(),
                              dequantize.data()};
  const auto x = picker.bytes(s.in * s.in_h * s.in_w, c.layouts.x_type);
  const auto residual = picker.bytes(s.out * pixels, c.layouts.residual_type);
  const bool floats = c.layouts.y_type == DType::kF32;
  std::vector<std::byte> expected(static_cast<size_t>(s.out * pixels) * (floats ? 4 : 1));
  reference::int8_conv(s, weights, epilogue,
                       {{x.data(), c.layouts.x_type},
                        {c.conv.residual ? residual.data() : nullptr, c.layouts.residual_type},
                        {expected.data(), c.layouts.y_type}});

  const auto x_quads = to_quads(c.layouts.x, c.layouts.x_type, x, c.skew);
  const auto residual_quads = to_quads(c.layouts.y, c.layouts.residual_type, residual, c.skew);
  std::vector<uint8_t> y(static_cast<size_t>(c.layouts.y.bytes()), 0x5A);
  clear_borders(c.layouts.y, zero_byte(c.layouts.y_type), 0, c.layouts.y.quads(), y.data());
  std::vector<float> got_floats(static_cast<size_t>(s.out * pixels));
  const Int8ConvPlan plan(s, weights, epilogue, c.layouts, c.dense, kernels);
  std::vector<uint8_t> scratch(static_cast<size_t>(plan.scratch_bytes()), 0xC3);
  Int8ConvMemory memory;
  memory.x = x_quads.data() + c.skew;
  memory.residual = c.conv.residual ? residual_quads.data() + c.skew : nullptr;
  memory.y = y.data();
  memory.floats = got_floats.data();
  memory.scratch = scratch.data();
  const int64_t scratch_parts = plan.scratch_parts(c.threads), parts = plan.parts(c.threads);
  for (int64_t part = 0; part < scratch_parts; ++part) plan.make_ready(memory, part, scratch_parts);
  for (int64_t part = parts - 1; part >= 0; --part) plan.run(memory, part, parts);
  const std::string where = std::string(kernels.name) + " seed " + std::to_string(seed) + ": " + c.text() +
                            " in chunks of " + std::to_string(plan.outputs());
  if (floats) {
    ASSERT_EQ(std::memcmp(got_floats.data(), expected.data(), expected.size()), 0) << where;
  } else {
    ASSERT_EQ(from_quads(c.layouts.y, c.layouts.y_type, y.data()), expected) << where;
  }
}

TEST_P(Int8Kernel, RandomConvolutionsGiveTheBytesOfTheReference) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    expect_conv_matches(*GetParam(), random_case(seed), seed);
    if (HasFatalFailure()) return;
  }
}

// Widths around every vector's, with the layouts that the kernels are made for.
TEST_P(Int8Kernel, EveryWidthAndLayout) {
  uint64_t seed = 1000;
  for (const int64_t width : {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33}) {
    for (const int64_t share : {1, 2, 4}) {
      for (const int64_t share_inputs : {1, 4, 4, 4}) {
        Picker picker{Random(seed, Purpose::kTest, 26)};
        Int8ConvCase c;
        ConvShape& s = c.conv.shape;
        s.in = 9, s.out = 10;
        s.in_h = picker.pick(0, 1) == 0 ? 5 : 8, s.in_w = width;
        s.kernel_h = s.kernel_w = picker.pick(0, 3) == 0 ? 1 : 3;
        s.padding_h = s.padding_w = s.kernel_h / 2;
        s.stride_h = s.stride_w = picker.pick(1, 2);
        s.taps = 1;
        s.share_outputs = share;
        s.share_inputs = share_inputs;
        s.may_be_empty = picker.pick(0, 2) == 0;
        c.conv.residual = picker.random.coin();
        c.layouts.x = {s.in, s.in_h, s.in_w, 1, 1};
        c.layouts.y = {s.out, s.out_h(), s.out_w(), 1, 1};
        c.layouts.x_type = picker.type();
        c.layouts.residual_type = picker.type();
        c.threads = picker.pick(1, 2);
        expect_conv_matches(*GetParam(), c, seed++);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Units of two rows whose results are finished number by number: the second row of the residual lies behind a border.
TEST_P(Int8Kernel, ResidualOfTwoRowsWithShiftsOf32) {
  for (uint64_t seed = 2000; seed < 2008; ++seed) {
    Int8ConvCase c;
    ConvShape& s = c.conv.shape;
    s.in = 8, s.out = 8;
    s.stride_h = s.stride_w = seed % 2 == 0 ? 1 : 2;
    s.in_h = s.in_w = 8 * s.stride_h;
    s.kernel_h = s.kernel_w = 3;
    s.padding_h = s.padding_w = 1;
    s.taps = 1;
    s.share_outputs = s.share_inputs = 4;
    c.conv.residual = c.coarse = true;
    c.layouts.x = {s.in, s.in_h, s.in_w, 1, 1};
    c.layouts.y = {s.out, s.out_h(), s.out_w(), 1, 1};
    expect_conv_matches(*GetParam(), c, seed);
    if (HasFatalFailure()) return;
  }
}

// What the two tests above compare, targets with such kernels do.
TEST_P(Int8Kernel, InputsAreReadAsIsCheapest) {
  ConvShape s;
  s.in = s.out = 16;
  s.in_h = s.in_w = 8;
  s.kernel_h = s.kernel_w = 3;
  s.padding_h = s.padding_w = 1;
  s.taps = 1;
  s.share_outputs = 4;
  const std::vector<int8_t> weight(16 * 16, 1);
  const std::vector<int32_t> bias(16, 0);
  const std::vector<Requantize> requantize(16, {1 << 30, 40});
  Int8ConvLayouts layouts{{16, 8, 8, 1, 1}, {16, 8, 8, 1, 1}};
  const auto source_of = [&](int64_t share_inputs) {
    s.share_inputs = share_inputs;
    Random random(7, Purpose::kTest, 25);
    const std::vector<uint16_t> positions = uniform_positions(s, random);
    return Int8ConvPlan(s, {weight.data(), positions.data()}, {bias.data(), 0, nullptr, requantize.data()}, layouts,
                        false, *GetParam())
        .source();
  };
  const bool has_two_rows = kernels().lanes == 16 && kernels().most_vectors(Int8Source::kTwoRows, 4) > 0;
  EXPECT_EQ(source_of(4), has_two_rows ? Int8Source::kTwoRows : Int8Source::kQuads) << GetParam()->name;
  s.stride_h = s.stride_w = 2;
  s.in_h = s.in_w = 16;
  layouts.x = {16, 16, 16, 1, 1};
  const bool has_strided = kernels().most_vectors(Int8Source::kStrided, 4) > 0;
  EXPECT_EQ(source_of(4), has_strided    ? Int8Source::kStridedTwoRows
                          : has_two_rows ? Int8Source::kTwoRows
                                         : Int8Source::kQuads)
      << GetParam()->name;
  s.stride_h = s.stride_w = 1;
  s.in_h = s.in_w = 8;
  layouts.x = {16, 8, 8, 1, 1};
  const bool has_pairs = kernels().expand != nullptr;
  EXPECT_EQ(has_pairs, kernels().most_vectors(Int8Source::kPairs, 4) > 0);
  EXPECT_EQ(source_of(1), has_pairs ? Int8Source::kPairs : source_of(4)) << GetParam()->name;
}

TEST_P(Int8Kernel, TheLargestSumsDoNotSaturate) {
  Int8ConvCase c;
  ConvShape& s = c.conv.shape;
  s.in = 64, s.out = 4, s.in_h = 2, s.in_w = 17;
  c.layouts.x = {s.in, s.in_h, s.in_w, 0, 0};
  c.layouts.y = {s.out, s.in_h, s.in_w, 0, 0};
  c.layouts.y_type = DType::kF32;
  std::vector<int8_t> weight(static_cast<size_t>(s.in * s.out));
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = i / 64 % 2 == 0 ? 127 : -127;
  const std::vector<int32_t> bias(4, 3);
  const std::vector<float> dequantize(4, 1.0f);
  const std::vector<std::byte> x(static_cast<size_t>(64 * 34), std::byte{255});
  const auto quads = to_quads(c.layouts.x, DType::kU8, x);
  const Int8ConvPlan plan(s, {weight.data(), nullptr}, {bias.data(), 0, nullptr, nullptr, dequantize.data()}, c.layouts,
                          false, *GetParam());
  std::vector<float> y(4 * 34);
  Int8ConvMemory memory;
  memory.x = quads.data();
  memory.floats = y.data();
  plan.run(memory);
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], (i / 34 % 2 == 0 ? 1.0f : -1.0f) * 64 * 127 * 255 + 3) << GetParam()->name << " at " << i;
  }
}

TEST_P(Int8Kernel, LinearSums) {
  Picker picker{Random(3, Purpose::kTest, 22)};
  for (const int64_t bytes : {64, 128, 320}) {
    const auto weight = picker.weights(bytes * 5);
    const auto x = picker.bytes(bytes, DType::kU8);
    std::vector<int32_t> sums(5);
    kernels().linear(bytes, 5, weight.data(), reinterpret_cast<const uint8_t*>(x.data()), sums.data());
    for (int64_t d = 0; d < 5; ++d) {
      int32_t expected = 0;
      for (int64_t i = 0; i < bytes; ++i) {
        expected += weight[static_cast<size_t>(d * bytes + i)] *
                    (static_cast<int32_t>(x[static_cast<size_t>(i)]) - kernels().input_offset);
      }
      EXPECT_EQ(sums[static_cast<size_t>(d)], expected) << GetParam()->name;
    }
  }
}

TEST_P(Int8Kernel, SumsOfPlanesAndRowsThatAreCopied) {
  Picker picker{Random(4, Purpose::kTest, 23)};
  for (int64_t width = 1; width <= 35; ++width) {
    const QuadLayout layout{3, 3, width, 1, 2};
    const auto planes = picker.bytes(layout.channels * 3 * width, DType::kU8);
    const auto quads = to_quads(layout, DType::kU8, planes);
    int32_t sums[4];
    kernels().quad_sums(layout, quads.data(), sums);
    for (int64_t c = 0; c < 3; ++c) {
      const auto first = planes.begin() + c * 3 * width;
      EXPECT_EQ(sums[c], std::accumulate(first, first + 3 * width, 0,
                                         [](int sum, std::byte byte) { return sum + static_cast<int>(byte); }));
    }
    const auto row = picker.bytes(2 * width * 4, DType::kU8);
    const auto* x = reinterpret_cast<const uint8_t*>(row.data());
    std::vector<uint8_t> half(static_cast<size_t>(width * 4)), masked(half.size(), 7);
    kernels().every_second(width, x, half.data());
    kernels().blend(width, 0x00FF00FF, x, masked.data());
    for (size_t i = 0; i < half.size(); ++i) {
      EXPECT_EQ(half[i], x[i / 4 * 8 + i % 4]) << GetParam()->name << " width " << width;
      EXPECT_EQ(masked[i], i % 2 == 0 ? x[i] : 7) << GetParam()->name << " width " << width;
    }
  }
}

TEST_P(Int8Kernel, SumsOfValues) {
  Picker picker{Random(5, Purpose::kTest, 24)};
  for (int64_t pixels = 1; pixels <= 35; ++pixels) {
    const DType a_type = picker.type(), b_type = picker.type(), y_type = picker.type();
    const auto a = picker.bytes(pixels * 4, a_type), b = picker.bytes(pixels * 4, b_type);
    const std::vector<int32_t> factors = {static_cast<int32_t>(picker.pick(-70000, 70000)), 65536};
    std::vector<std::byte> expected(a.size());
    reference::int8_add(pixels * 4, {{a.data(), a_type}, {b.data(), b_type}}, factors.data(),
                        {expected.data(), y_type});
    const auto stored = [](std::vector<std::byte> list, DType type) {
      for (std::byte& byte : list) byte = static_cast<std::byte>(static_cast<uint8_t>(byte) + zero_byte(type));
      return list;
    };
    const auto x = stored(a, a_type), z = stored(b, b_type);
    const Int8Kernels::Addend addends[2] = {
        {reinterpret_cast<const uint8_t*>(x.data()), zero_byte(a_type), factors[0]},
        {reinterpret_cast<const uint8_t*>(z.data()), zero_byte(b_type), factors[1]}};
    std::vector<std::byte> y(a.size()), larger(a.size());
    kernels().add(pixels * 4, addends, 2, zero_byte(y_type), reinterpret_cast<uint8_t*>(y.data()));
    EXPECT_EQ(y, stored(expected, y_type)) << GetParam()->name << " pixels " << pixels;
    kernels().max(pixels * 4, addends[0].x, addends[1].x, reinterpret_cast<uint8_t*>(larger.data()));
    for (size_t i = 0; i < larger.size(); ++i) ASSERT_EQ(larger[i], std::max(x[i], z[i]));
  }
}

TEST_P(Int8Kernel, FloatsAreRoundedAsTheReferenceDoes) {
  Picker picker{Random(6, Purpose::kTest, 25)};
  for (int64_t width = 1; width <= 35; ++width) {
    const QuadLayout layout{3, 2, width, 1, 1};
    const float scale = width % 2 == 0 ? 0.5f : 0.0173f;
    std::vector<float> x;
    for (int64_t i = 0; i < 3 * 2 * width; ++i) {
      // Halves, where rounding shows, and what is no number of that range.
      const float half = (static_cast<float>(picker.pick(-260, 260)) + 0.5f) * scale;
      x.push_back(i % 7 == 0 ? picker.random.uniform(-3, 3) : half);
    }
    x[0] = std::numeric_limits<float>::quiet_NaN();
    x[1] = std::numeric_limits<float>::infinity();
    x[2] = -std::numeric_limits<float>::max();
    for (const DType type : {DType::kI8, DType::kU8}) {
      std::vector<std::byte> expected(x.size());
      reference::quantize(static_cast<int64_t>(x.size()), scale, x.data(), {expected.data(), type});
      std::vector<uint8_t> quads(static_cast<size_t>(layout.bytes()));
      clear_borders(layout, zero_byte(type), 0, 1, quads.data());
      kernels().quantize(layout, 3, scale, x.data(), 2 * width, zero_byte(type), quads.data());
      EXPECT_EQ(from_quads(layout, type, quads.data()), expected) << GetParam()->name << " width " << width;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Int8Kernel, ::testing::ValuesIn(kernel_sets(DType::kI8)),
                         [](const auto& target) { return std::string(target.param->name); });

TEST(Int8Dispatch, RowsAreCompleteAndThePlainOneIsLast) {
  for (const KernelSet* set : kernel_sets(DType::kI8)) {
    const Int8Kernels& kernels = *set->int8;
    EXPECT_EQ(set->type, DType::kI8);
    EXPECT_TRUE(kernels.linear && kernels.quad_sums && kernels.quantize && kernels.add && kernels.max &&
                kernels.blend && kernels.every_second && kernels.dot_rounds)
        << set->name;
    for (const int outputs : {1, 2, 4}) EXPECT_GE(kernels.most_vectors(Int8Source::kQuads, outputs), 2) << set->name;
    EXPECT_EQ(64 % (kernels.lanes * 4), 0) << set->name;
  }
  EXPECT_STREQ(kernel_sets(DType::kI8).back()->name, "plain");
}

// A row that is missing is a row that no test above has tried.
TEST(Int8Dispatch, RowsAreThoseOfTheCpu) {
  std::vector<std::string> names;
  for (const KernelSet* set : kernel_sets(DType::kI8)) names.emplace_back(set->name);
  // The emulator of 64-bit ARM shows the host's /proc/cpuinfo: the preset says what it has.
  if (const char* expected = std::getenv("ONETAP_INT8_TARGETS")) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
    EXPECT_EQ(text, expected);
  }
#if defined(__x86_64__) && defined(__linux__) && defined(ONETAP_HAVE_HIGHWAY)
  std::set<std::string> flags;
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (flags.empty() && std::getline(file, line)) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) flags.insert(word);
  }
  const auto expect_row = [&](const char* flag, const char* name) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), flags.count(flag)) << name;
  };
  if (flags.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
  expect_row("avx512_vnni", "avx512vnni");
#if __GNUC__ >= 11 || __clang_major__ >= 12
  expect_row("avx_vnni", "avxvnni");
#endif
  expect_row("avx512bw", "avx512");
  expect_row("avx2", "avx2");
  expect_row("sse4_2", "sse4");
#endif
}

}  // namespace
}  // namespace onetap
