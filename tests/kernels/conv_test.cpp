#include "tests/kernels/conv_case.h"
#include "tests/support/support.h"

#include <numeric>

namespace onetap {
namespace {

using testing::ConvCase;
using testing::expect_matches_reference;
using testing::random_conv_case;
using testing::sweep_cases;

class ConvKernels : public ::testing::TestWithParam<const KernelSet*> {};

TEST_P(ConvKernels, EqualTheReferenceOnRandomShapes) {
  for (uint64_t seed = 0; seed < sweep_cases(2000) && !HasFailure(); ++seed) {
    expect_matches_reference(*GetParam(), random_conv_case(seed), seed);
  }
}

TEST_P(ConvKernels, EqualTheReferenceInParts) {
  for (uint64_t seed = 0; seed < sweep_cases(200) && !HasFailure(); ++seed) {
    for (const auto by : {ConvCut::By::kPixels, ConvCut::By::kGroups, ConvCut::By::kOutputs}) {
      for (const int64_t parts : {2, 3, 5}) {
        expect_matches_reference(*GetParam(), random_conv_case(seed), seed, {by, parts});
      }
    }
  }
}

// Blocks of 4x4, of all outputs, of sizes that do not divide: every block has its set of positions, full or not.
TEST_P(ConvKernels, EqualTheReferenceForEveryLayout) {
  uint64_t seed = 0;
  for (const int64_t share_outputs : {1, 2, 3, 4, 5, 13}) {
    for (const int64_t share_inputs : {1, 2, 4, 11}) {
      for (const int64_t taps : {1, 3}) {
        for (const bool may_be_empty : {false, true}) {
          for (const bool dense : {false, true}) {
            ConvCase c;
            c.shape.in = 11;
            c.shape.in_h = 7;
            c.shape.in_w = 9;
            c.shape.kernel_h = c.shape.kernel_w = 3;
            c.shape.padding_h = c.shape.padding_w = 1;
            c.shape.out = 13;
            c.shape.taps = taps;
            c.shape.share_outputs = share_outputs;
            c.shape.share_inputs = share_inputs;
            c.shape.may_be_empty = may_be_empty;
            c.blocking = {4, 3, 4, 6, dense};
            c.residual = c.relu = share_inputs == 4;
            expect_matches_reference(*GetParam(), c, ++seed);
            expect_matches_reference(*GetParam(), c, seed, {ConvCut::By::kOutputs, 3});
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// Every register tile, on planes around its own width.
TEST_P(ConvKernels, EveryTileAtItsEdges) {
  const KernelSet& kernels = *GetParam();
  for (int outputs = 1; outputs <= kMaxOutputs; ++outputs) {
    EXPECT_GE(kernels.max_vectors(outputs), 1);
    for (int vectors = 1; vectors <= kernels.max_vectors(outputs); ++vectors) {
      for (const int64_t pixels : {int64_t{1}, int64_t{kernels.lanes} * vectors - 1, int64_t{kernels.lanes} * vectors,
                                   int64_t{kernels.lanes} * vectors + 1}) {
        ConvCase c;
        c.shape.in = 5;
        c.shape.in_w = pixels;
        c.shape.in_h = 3;
        c.shape.kernel_h = c.shape.kernel_w = 3;
        c.shape.padding_h = c.shape.padding_w = 1;
        c.shape.out = outputs * 2 + 1;
        c.shape.taps = 1;
        c.shape.share_outputs = outputs;
        c.blocking = {outputs, vectors, 3, vectors * 2, false};
        c.residual = c.relu = true;
        expect_matches_reference(kernels, c, static_cast<uint64_t>(pixels));
        if (HasFailure()) return;
      }
    }
  }
}

// One tap at each position of the kernel in turn, corners included, for the strides and plane sizes of the networks.
TEST_P(ConvKernels, EveryPositionAlone) {
  for (const int64_t side : {4, 7, 8, 16, 28, 32}) {
    for (const int64_t stride : {1, 2}) {
      for (uint16_t position = 0; position < 9; ++position) {
        ConvShape shape;
        shape.in_h = shape.in_w = side;
        shape.kernel_h = shape.kernel_w = 3;
        shape.padding_h = shape.padding_w = 1;
        shape.stride_h = shape.stride_w = stride;
        shape.taps = 1;
        const float weight = 1;
        std::vector<float> x(static_cast<size_t>(side * side));
        std::iota(x.begin(), x.end(), 1.0f);
        const int64_t out = shape.out_h();
        auto y = aligned_array<float>(round_up(out * out, kLineFloats));
        const ConvPlan plan(shape, {&weight, &position, nullptr}, {}, *GetParam());
        auto scratch = aligned_array<float>(plan.scratch_floats());
        ConvIo io;
        io.x = x.data();
        io.x_plane = side * side;
        io.y = y.get();
        io.y_plane = round_up(out * out, kLineFloats);
        run_conv(*GetParam(), plan, io, scratch.get());
        for (int64_t i = 0; i < out * out; ++i) {
          const int64_t row = i / out * stride + position / 3 - 1, column = i % out * stride + position % 3 - 1;
          const bool inside = row >= 0 && row < side && column >= 0 && column < side;
          ASSERT_EQ(y[static_cast<size_t>(i)], inside ? static_cast<float>(row * side + column + 1) : 0.0f)
              << "side " << side << " stride " << stride << " position " << position << " pixel " << i;
        }
      }
    }
  }
}

TEST_P(ConvKernels, ALayerThatKeepsNothingIsItsBias) {
  for (const int64_t stride : {1, 2}) {
    ConvShape shape;
    shape.in = 3;
    shape.out = 2;
    shape.in_h = shape.in_w = 8;
    shape.kernel_h = shape.kernel_w = 3;
    shape.padding_h = shape.padding_w = 1;
    shape.stride_h = shape.stride_w = stride;
    shape.taps = 1;
    shape.may_be_empty = true;
    const std::vector<float> weight(6, 1.0f), bias = {1.5f, -2.5f}, x(3 * 64, 7.0f);
    const std::vector<uint16_t> nothing(6, 9);
    const int64_t pixels = shape.out_h() * shape.out_w(), plane = round_up(pixels, kLineFloats);
    const ConvPlan plan(shape, {weight.data(), nothing.data(), bias.data()}, {}, *GetParam());
    auto scratch = aligned_array<float>(plan.scratch_floats());
    auto y = aligned_array<float>(2 * plane);
    ConvIo io;
    io.x = x.data();
    io.x_plane = 64;
    io.y = y.get();
    io.y_plane = plane;
    run_conv(*GetParam(), plan, io, scratch.get());
    for (int64_t i = 0; i < pixels; ++i) {
      ASSERT_EQ(y[static_cast<size_t>(i)], 1.5f);
      ASSERT_EQ(y[static_cast<size_t>(plane + i)], -2.5f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvKernels, ::testing::ValuesIn(kernel_sets()),
                         [](const auto& target) { return target.param->name; });

// Straight from the definition: y[d] = bias + sum over c and the entries of the block that (d, c) lies in.
TEST(ReferenceConv, FollowsTheDefinitionForEveryLayout) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ConvShape s = random_conv_case(seed).shape;
    s.taps = std::max<int64_t>(s.taps, 1);
    s.may_be_empty = seed % 2 == 0;
    Random random(seed, Purpose::kTest, 12);
    const int64_t in = s.in / s.groups, blocks_across = (in + s.share_inputs - 1) / s.share_inputs;
    const auto positions = testing::uniform_positions(s, random);
    ASSERT_EQ(static_cast<int64_t>(positions.size()),
              (s.out + s.share_outputs - 1) / s.share_outputs * blocks_across * s.taps);
    const auto weight = testing::uniform_floats(s.out * in * s.taps, random);
    const auto bias = testing::uniform_floats(s.out, random);
    const auto x = testing::uniform_floats(s.in * s.in_h * s.in_w, random);
    std::vector<float> y(static_cast<size_t>(s.out * s.out_h() * s.out_w()));
    reference::conv(s, {weight.data(), positions.data(), bias.data()}, x.data(), y.data());
    size_t at = 0;
    for (int64_t d = 0; d < s.out; ++d) {
      for (int64_t oy = 0; oy < s.out_h(); ++oy) {
        for (int64_t ox = 0; ox < s.out_w(); ++ox) {
          double sum = bias[static_cast<size_t>(d)];
          for (int64_t c = 0; c < in; ++c) {
            const int64_t block = d / s.share_outputs * blocks_across + c / s.share_inputs;
            for (int64_t t = 0; t < s.taps; ++t) {
              const int64_t code = positions[static_cast<size_t>(block * s.taps + t)];
              if (code == s.kernel_h * s.kernel_w) continue;
              const int64_t iy = oy * s.stride_h + code / s.kernel_w * s.dilation_h - s.padding_h;
              const int64_t ix = ox * s.stride_w + code % s.kernel_w * s.dilation_w - s.padding_w;
              if (iy < 0 || iy >= s.in_h || ix < 0 || ix >= s.in_w) continue;
              const int64_t plane = d / (s.out / s.groups) * in + c;
              sum += static_cast<double>(weight[static_cast<size_t>((d * in + c) * s.taps + t)]) *
                     x[static_cast<size_t>((plane * s.in_h + iy) * s.in_w + ix)];
            }
          }
          ASSERT_NEAR(y[at++], sum, 1e-4) << seed;
        }
      }
    }
  }
}

// 4 outputs in pairs, 4 inputs; of the 8 sets of two codes, three have one entry and one has none.
TEST(ConvPlan, EmptySlicesAreNoEntries) {
  ConvShape shape;
  shape.in = shape.out = 4;
  shape.in_h = shape.in_w = 8;
  shape.kernel_h = shape.kernel_w = 3;
  shape.padding_h = shape.padding_w = 1;
  shape.taps = 2;
  shape.share_outputs = 2;
  shape.may_be_empty = true;
  const std::vector<float> weight(32, 1.0f);
  const std::vector<uint16_t> codes = {0, 4, 4, 9, 9, 9, 1, 2, 3, 9, 5, 6, 7, 8, 8, 9};
  const ConvWeights weights{weight.data(), codes.data(), nullptr};
  const ConvPlan plan(shape, weights, {2, 4, 4, 8, false}, *kernel_sets().back());
  ASSERT_EQ(plan.blocks().size(), 1u);
  EXPECT_EQ(plan.blocks()[0].entries_from, (std::vector<int64_t>{0, 5, 11}));
  EXPECT_EQ(plan.macs(), (5 + 6) * 2 * 64);
  EXPECT_EQ(plan.weight_bytes(), 11 * 2 + 22 * 4 + 4 * 4);  // places, weights, biases

  const std::vector<uint16_t> nothing(16, 9);
  const ConvPlan empty(shape, {weight.data(), nothing.data(), nullptr}, {2, 4, 4, 8, false}, *kernel_sets().back());
  EXPECT_EQ(empty.macs(), 0);
  EXPECT_EQ(empty.stream_bytes(), 0);
  EXPECT_TRUE(empty.layout().copies().empty());
}

TEST(ConvPlan, PacksOnlyWhatIsUsed) {
  ConvShape shape;
  shape.in = 4;
  shape.in_h = shape.in_w = 32;
  shape.out = 4;
  shape.kernel_h = shape.kernel_w = 3;
  shape.padding_h = shape.padding_w = 1;
  shape.taps = 1;
  const std::vector<float> weight(16, 1.0f);
  const std::vector<uint16_t> centre(16, 4);
  const ConvPlan plan(shape, {weight.data(), centre.data(), nullptr}, {}, *kernel_sets().back());
  EXPECT_EQ(plan.layout().copies().size(), 1u);
}

}  // namespace
}  // namespace onetap
