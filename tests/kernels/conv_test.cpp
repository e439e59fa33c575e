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
        c.shape.share = outputs;
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

INSTANTIATE_TEST_SUITE_P(Targets, ConvKernels, ::testing::ValuesIn(kernel_sets()),
                         [](const auto& target) { return target.param->name; });

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
  EXPECT_EQ(plan.copies().size(), 1u);
}

}  // namespace
}  // namespace onetap
