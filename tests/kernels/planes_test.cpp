// Convolutions with few planes a group, shifts and active shifts: PlanePlan against the reference, on every target.
#include "onetap/kernels/planes.h"

#include "tests/kernels/conv_case.h"
#include "tests/support/support.h"

#include <limits>

namespace onetap {
namespace {

using testing::ConvCase;
using testing::random_conv_case;
using testing::sweep_cases;
using testing::uniform_floats;

// Planes as a case has them: beside cache lines, apart, with what must not be read between them, x ending with its last
// plane. y's planes have room for whole vectors, and numbers behind that room which must stay.
class PlaneMemory {
 public:
  PlaneMemory(const PlaneShape& shape, int64_t lanes, int64_t gap, int64_t skew)
      : shape_(shape), x_plane_(shape.in_h * shape.in_w + gap), room_(round_up(shape.pixels(), lanes)), skew_(skew) {
    const auto nan = std::numeric_limits<float>::quiet_NaN();
    x_.assign(static_cast<size_t>(skew + (shape.in - 1) * x_plane_ + shape.in_h * shape.in_w), nan);
    y_.assign(static_cast<size_t>(skew + shape.out * (room_ + kGuard)), kUntouched);
    residual_.assign(static_cast<size_t>(skew + shape.out * room_), nan);
  }

  void set(const std::vector<float>& x, const std::vector<float>& residual) {
    const int64_t in = shape_.in_h * shape_.in_w, out = shape_.pixels();
    for (int64_t c = 0; c < shape_.in; ++c) std::copy_n(x.data() + c * in, in, x_.data() + skew_ + c * x_plane_);
    for (int64_t d = 0; d < shape_.out; ++d) {
      std::copy_n(residual.data() + d * out, out, residual_.data() + skew_ + d * room_);
    }
  }

  ConvIo io(bool residual, bool relu) {
    ConvIo io;
    io.x = x_.data() + skew_;
    io.x_plane = x_plane_;
    io.y = y_.data() + skew_;
    io.y_plane = room_ + kGuard;
    io.relu = relu;
    if (!residual) return io;
    io.residual = residual_.data() + skew_;
    io.residual_plane = room_;
    return io;
  }

  // The largest difference; infinity for what is no number, or for a write where none may be.
  double worst(const std::vector<float>& expected) const {
    double gap = 0;
    for (int64_t d = 0; d < shape_.out; ++d) {
      const float* plane = y_.data() + skew_ + d * (room_ + kGuard);
      for (int64_t i = 0; i < shape_.pixels(); ++i) {
        const double one =
            std::abs(static_cast<double>(plane[i]) - expected[static_cast<size_t>(d * shape_.pixels() + i)]);
        gap = std::max(gap, std::isnan(one) ? std::numeric_limits<double>::infinity() : one);
      }
      for (int64_t i = 0; i < kGuard; ++i) {
        if (plane[room_ + i] != kUntouched) gap = std::numeric_limits<double>::infinity();
      }
    }
    return gap;
  }

 private:
  static constexpr float kUntouched = -12345.0f;
  static constexpr int64_t kGuard = 16;

  PlaneShape shape_;
  int64_t x_plane_, room_, skew_;
  std::vector<float> x_, y_, residual_;
};

void run_in_parts(const KernelSet& kernels, const PlanePlan& plan, const ConvIo& io, int64_t parts) {
  auto scratch = aligned_array<float>(plan.scratch_floats());
  for (int64_t part = 0; part < parts; ++part) {
    std::fill_n(scratch.get(), plan.scratch_floats(), std::numeric_limits<float>::quiet_NaN());
    run_planes(kernels, plan, io, scratch.get(), part, parts);
  }
}

void expect_conv(const KernelSet& kernels, const ConvCase& c, uint64_t seed, bool dense = false, int64_t parts = 1) {
  const ConvShape& s = c.shape;
  Random random(seed, Purpose::kTest, 13);
  const auto weight = uniform_floats(s.out * s.in_per_group() * s.taps_per_slice(), random);
  const auto bias = uniform_floats(s.out, random);
  const auto positions = s.taps > 0 ? testing::uniform_positions(s, random) : std::vector<uint16_t>();
  const ConvWeights weights{weight.data(), s.taps > 0 ? positions.data() : nullptr, c.bias ? bias.data() : nullptr};
  const auto x = uniform_floats(s.in * s.in_h * s.in_w, random);
  const auto residual = uniform_floats(s.out * s.out_h() * s.out_w(), random);
  std::vector<float> expected(residual.size());
  reference::conv(s, weights, x.data(), expected.data());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (c.residual) expected[i] += residual[i];
    if (c.relu) expected[i] = std::max(expected[i], 0.0f);
  }
  PlaneMemory memory(plane_shape(s), kernels.lanes, c.x_gap, c.skew);
  memory.set(x, residual);
  const PlanePlan plan(s, weights, dense, kernels);
  run_in_parts(kernels, plan, memory.io(c.residual, c.relu), parts);
  const double scale = std::sqrt(static_cast<double>(s.in_per_group() * s.taps_per_slice())) + 1;
  EXPECT_LT(memory.worst(expected), 1e-6 * scale)
      << kernels.name << " seed " << seed << " parts " << parts << ": " << c.text();
}

ConvCase depthwise(int64_t channels, int64_t multiplier, int64_t height, int64_t width, int64_t kernel) {
  ConvCase c;
  c.shape.in = c.shape.groups = channels;
  c.shape.out = channels * multiplier;
  c.shape.in_h = height;
  c.shape.in_w = width;
  c.shape.kernel_h = c.shape.kernel_w = kernel;
  c.shape.padding_h = c.shape.padding_w = kernel / 2;
  c.residual = c.relu = true;
  return c;
}

class PlaneKernels : public ::testing::TestWithParam<const KernelSet*> {};

// Rows around every number of vectors, and around half a vector, where packing takes over.
TEST_P(PlaneKernels, EqualTheReferenceOnRowsOfEveryLength) {
  const int64_t lanes = GetParam()->lanes;
  uint64_t seed = 0;
  for (const int64_t kernel : {1, 3, 5, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (int64_t width = 1; width <= 3 * lanes + 2 && !HasFailure(); ++width) {
        ConvCase c = depthwise(3, 1, 1 + width % 11, width, kernel);
        c.shape.stride_h = c.shape.stride_w = stride;
        expect_conv(*GetParam(), c, ++seed);
      }
    }
  }
}

// Heights around the rows that a window of 3x3 takes at a time, with and without a rest.
TEST_P(PlaneKernels, EqualTheReferenceOnEveryHeight) {
  uint64_t seed = 0;
  for (const int64_t width : {3, 9, 16, 17, 33}) {
    for (int64_t height = 1; height <= 14 && !HasFailure(); ++height) {
      for (const bool plain : {false, true}) {
        ConvCase c = depthwise(2, 2, height, width, 3);
        if (plain) c.residual = c.relu = c.bias = false;
        c.skew = height % 5;
        c.x_gap = width % 3;
        expect_conv(*GetParam(), c, ++seed);
        c.shape.padding_w = 0;
        expect_conv(*GetParam(), c, ++seed);
      }
    }
  }
}

TEST_P(PlaneKernels, EqualTheReferenceOnRandomShapes) {
  for (uint64_t seed = 0; seed < sweep_cases(2000) && !HasFailure(); ++seed) {
    ConvCase c = random_conv_case(seed);
    if (seed % 2 == 0) {  // depthwise
      c.shape.groups = c.shape.in;
      c.shape.out = c.shape.in * (1 + static_cast<int64_t>(seed % 3));
      c.shape.share_inputs = 1;
      c.shape.share_outputs = std::min(c.shape.share_outputs, c.shape.out);
    }
    expect_conv(*GetParam(), c, seed, seed % 5 == 0);
  }
}

TEST_P(PlaneKernels, EqualTheReferenceInParts) {
  for (const int64_t width : {3, 8, 20}) {
    for (const int64_t parts : {1, 2, 3, 7}) {
      expect_conv(*GetParam(), depthwise(67, 1, 9, width, 3), static_cast<uint64_t>(width), false, parts);
    }
  }
}

// A plane that does not fit the scratch of a tile, packed (thin rows) and padded.
TEST_P(PlaneKernels, EqualTheReferenceOnLargePlanes) {
  expect_conv(*GetParam(), depthwise(2, 1, 4000, 2, 3), 1);
  expect_conv(*GetParam(), depthwise(2, 1, 120, 131, 5), 2);
}

// Kernels far larger than the image: most taps lie outside wherever they are read.
TEST_P(PlaneKernels, TapsThatReachNothingAreLeftOut) {
  ConvCase c = depthwise(3, 1, 2, 3, 63);
  c.shape.dilation_h = c.shape.dilation_w = 2;
  c.shape.padding_h = c.shape.padding_w = 62;
  expect_conv(*GetParam(), c, 1);
  // All of them: nothing is left but the bias.
  ConvShape s = depthwise(1, 1, 1, 1, 2).shape;
  s.dilation_h = s.dilation_w = 9;
  s.padding_h = s.padding_w = 5;
  const std::vector<float> weight(4, 1.0f), bias = {0.5f};
  const PlaneTaps taps = conv_taps(s, {weight.data(), nullptr, bias.data()});
  EXPECT_TRUE(taps.taps.empty());
  EXPECT_EQ(taps.from, (std::vector<int64_t>{0, 0}));
}

TEST_P(PlaneKernels, NaNComesThroughAndStaysWhereItIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t width : {5, 16, 21}) {
    const ConvShape s = depthwise(2, 1, 6, width, 3).shape;
    const std::vector<float> weight(18, 1.0f);
    const PlanePlan plan(s, {weight.data(), nullptr, nullptr}, false, *GetParam());
    for (int64_t at = 0; at < 6 * width; ++at) {
      std::vector<float> x(static_cast<size_t>(2 * 6 * width), 1.0f), expected(x.size());
      x[static_cast<size_t>(6 * width + at)] = nan;
      PlaneMemory memory(plane_shape(s), GetParam()->lanes, 0, 0);
      memory.set(x, x);
      const ConvIo io = memory.io(false, true);
      run_in_parts(*GetParam(), plan, io, 1);
      for (int64_t i = 0; i < 6 * width; ++i) {
        const bool covers = std::abs(i / width - at / width) <= 1 && std::abs(i % width - at % width) <= 1;
        ASSERT_EQ(std::isnan(io.y[io.y_plane + i]), covers) << GetParam()->name << " pixel " << at << " output " << i;
        ASSERT_FALSE(std::isnan(io.y[i])) << GetParam()->name;
      }
    }
  }
}

// Shifts by whole pixels: every direction of a 5x5 kernel, dilated, against the reference, exactly.
TEST_P(PlaneKernels, MovePlanesAsTheReferenceDoes) {
  for (const int64_t width : {1, 3, 7, 8, 15, 16, 17, 33}) {
    reference::ShiftShape shape{25, 1 + width % 9, width, 5, 5, 1 + width % 2, 1 + width % 3};
    std::vector<uint16_t> codes;
    PlaneTaps taps;
    for (int32_t c = 0; c < 25; ++c) {
      codes.push_back(static_cast<uint16_t>(c));
      taps.taps.push_back({0, static_cast<int32_t>((c / 5 - 2) * shape.dilation_h),
                           static_cast<int32_t>((c % 5 - 2) * shape.dilation_w), 1.0f});
      taps.end_result();
    }
    Random random(static_cast<uint64_t>(width), Purpose::kTest, 14);
    const auto x = uniform_floats(25 * shape.height * width, random);
    std::vector<float> expected(x.size());
    reference::shift(shape, codes.data(), x.data(), expected.data());
    const PlaneShape planes{25, shape.height, width, 25, shape.height, width, 1, 1, 25};
    PlaneMemory memory(planes, GetParam()->lanes, 2, 1);
    memory.set(x, x);
    run_in_parts(*GetParam(), PlanePlan(planes, taps, nullptr, *GetParam()), memory.io(false, false), 2);
    EXPECT_EQ(memory.worst(expected), 0) << GetParam()->name << " width " << width;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, PlaneKernels, ::testing::ValuesIn(kernel_sets()),
                         [](const auto& target) { return target.param->name; });

TEST(PlaneTapsTest, ReachesIsWhatTryingEveryRowSays) {
  for (int64_t offset = -12; offset <= 12; ++offset) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      for (int64_t results = 1; results <= 4; ++results) {
        for (int64_t extent = 1; extent <= 7; ++extent) {
          bool any = false;
          for (int64_t i = 0; i < results; ++i) any = any || (i * stride + offset >= 0 && i * stride + offset < extent);
          EXPECT_EQ(reaches(offset, stride, results, extent), any)
              << offset << " " << stride << " " << results << " " << extent;
        }
      }
    }
  }
}

TEST(PlanePlanTest, SaysWhatItCosts) {
  const ConvShape s = depthwise(6, 2, 9, 40, 3).shape;
  const std::vector<float> weight(static_cast<size_t>(s.out * 9), 1.0f);
  const KernelSet& kernels = find_kernels("plain");
  const PlanePlan plan(s, {weight.data(), nullptr, nullptr}, false, kernels);
  EXPECT_EQ(plan.macs(), 12 * 9 * 9 * 40);
  EXPECT_LE(plan.weight_bytes(), plane_plan_bytes(s, false, kernels));
  // Planes that no 32-bit number could find one's way in.
  PlaneShape huge{1, 1 << 20, 1 << 20, 1, 1 << 20, 1 << 20, 1, 1, 1};
  PlaneTaps far;
  far.end_result();
  testing::expect_error(ErrorKind::kUsage, "beyond what a group can hold",
                        [&] { PlanePlan(huge, far, nullptr, kernels); });
}

}  // namespace
}  // namespace onetap
