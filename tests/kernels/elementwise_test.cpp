#include "tests/kernels/conv_case.h"

#include <limits>
#include <numeric>

namespace onetap {
namespace {

using testing::uniform_floats;

class Kernels : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  static void expect_near(const std::vector<float>& got, const std::vector<float>& expected, double limit) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], limit) << GetParam()->name << " at " << i;
  }
};

// Lengths around every vector's, buffers beside every alignment.
TEST_P(Kernels, AddAndRelu) {
  Random random(1, Purpose::kTest);
  for (int64_t count = 0; count <= 70; ++count) {
    const int64_t skew = count % 5;
    const auto a = uniform_floats(count + skew, random), b = uniform_floats(count + skew, random);
    std::vector<float> y(static_cast<size_t>(count)), expected(y), positive(y), rectified(y);
    for (int64_t i = 0; i < count; ++i) {
      const auto k = static_cast<size_t>(i), from = static_cast<size_t>(i + skew);
      expected[k] = a[from] + b[from];
      positive[k] = std::max(expected[k], 0.0f);
      rectified[k] = std::max(a[from], 0.0f);
    }
    GetParam()->add(count, a.data() + skew, b.data() + skew, y.data(), false);
    EXPECT_EQ(y, expected);
    GetParam()->add(count, a.data() + skew, b.data() + skew, y.data(), true);
    EXPECT_EQ(y, positive);
    GetParam()->relu(count, a.data() + skew, y.data());
    EXPECT_EQ(y, rectified);
  }
}

TEST_P(Kernels, LinearAffineAndMean) {
  Random random(2, Purpose::kTest);
  for (const int64_t in : {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 67, 333}) {
    const int64_t out = in % 7 + 1;
    const auto weight = uniform_floats(in * out, random), bias = uniform_floats(out, random);
    const auto x = uniform_floats(in, random);
    std::vector<float> y(static_cast<size_t>(out)), expected(y);
    for (const bool relu : {false, true}) {
      reference::linear(in, out, weight.data(), relu ? nullptr : bias.data(), x.data(), expected.data());
      if (relu) {
        for (float& value : expected) value = std::max(value, 0.0f);
      }
      GetParam()->linear(in, out, weight.data(), relu ? nullptr : bias.data(), x.data(), y.data(), relu);
      expect_near(y, expected, 1e-5);
    }
    const auto planes = uniform_floats(in * out, random), scale = uniform_floats(out, random);
    std::vector<float> scaled(planes.size()), scaled_expected(planes.size());
    reference::affine(out, in, scale.data(), bias.data(), planes.data(), scaled_expected.data());
    GetParam()->affine({out, in, in}, scale.data(), bias.data(), planes.data(), scaled.data(), false);
    expect_near(scaled, scaled_expected, 1e-6);
    reference::global_mean(out, in, planes.data(), expected.data());
    GetParam()->global_mean({out, in, in}, planes.data(), y.data());
    expect_near(y, expected, 1e-6);
  }
}

TEST_P(Kernels, Pools) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, Purpose::kTest, 3);
    const auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random.below(static_cast<uint32_t>(high - low + 1)));
    };
    PoolShape shape;
    shape.channels = pick(1, 4);
    shape.kernel_h = pick(1, 4);
    shape.kernel_w = pick(1, 4);
    shape.padding_h = pick(0, shape.kernel_h / 2);
    shape.padding_w = pick(0, shape.kernel_w / 2);
    shape.stride_h = pick(1, 3);
    shape.stride_w = pick(1, 3);
    shape.in_h = pick(shape.kernel_h, 20);
    shape.in_w = pick(shape.kernel_w, 20);
    shape.out_h = (shape.in_h + 2 * shape.padding_h - shape.kernel_h) / shape.stride_h + 1;
    shape.out_w = (shape.in_w + 2 * shape.padding_w - shape.kernel_w) / shape.stride_w + 1;
    shape.is_max = random.coin();
    const auto x = uniform_floats(shape.channels * shape.in_h * shape.in_w, random);
    std::vector<float> y(static_cast<size_t>(shape.channels * shape.out_h * shape.out_w)), expected(y);
    reference::pool(shape, x.data(), expected.data());
    GetParam()->pool(shape, x.data(), shape.in_h * shape.in_w, y.data(), shape.out_h * shape.out_w);
    expect_near(y, expected, 1e-6);
  }
}

TEST_P(Kernels, TakesPlanesApart) {
  for (int64_t width = 1; width <= 40; ++width) {
    for (const int64_t stride_h : {1, 2, 3}) {
      for (const int64_t stride_w : {1, 2, 3}) {
        TakeApart task;
        task.channels = 2;
        task.height = 1 + width % 7;
        task.width = width;
        task.x_plane = task.height * width + 3;
        task.stride_h = stride_h;
        task.stride_w = stride_w;
        task.part_h = (task.height + stride_h - 1) / stride_h;
        task.part_w = (width + stride_w - 1) / stride_w;
        task.last_row = task.part_h;
        const std::vector<float> x = [&] {
          std::vector<float> values(static_cast<size_t>(task.x_plane + task.height * width));
          std::iota(values.begin(), values.end(), 1.0f);
          return values;
        }();
        task.x = x.data();
        const int64_t parts = stride_h * stride_w, part = task.part_h * task.part_w;
        bool wanted[9];
        for (int64_t k = 0; k < parts; ++k) wanted[k] = (k + width) % 4 != 0 || (stride_h == 2 && stride_w == 2);
        task.wanted = wanted;
        std::vector<float> got(static_cast<size_t>(2 * parts * part), -1.0f);
        task.parts = got.data();
        GetParam()->take_apart(task);
        for (int64_t i = 0; i < 2 * parts * part; ++i) {
          const int64_t c = i / (parts * part), k = i / part % parts, pixel = i % part;
          const int64_t row = pixel / task.part_w * stride_h + k / stride_w;
          const int64_t column = pixel % task.part_w * stride_w + k % stride_w;
          if (!wanted[k]) continue;
          const bool inside = row < task.height && column < width;
          ASSERT_EQ(got[static_cast<size_t>(i)],
                    inside ? static_cast<float>(c * task.x_plane + row * width + column + 1) : 0.0f)
              << width << " wide, strides " << stride_h << "x" << stride_w << " at " << i;
        }
      }
    }
  }
}

// A value that is no number stays one through every op, in vectors and in what is left of them, as in the reference and
// in LibTorch; its neighbours do not notice.
TEST_P(Kernels, NaNComesThrough) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto expect_nan_at = [](const std::vector<float>& y, size_t at, const char* what) {
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::isnan(y[i]), i == at) << GetParam()->name << " " << what << ": " << i << " of " << y.size();
    }
  };
  for (const size_t count : {size_t{1}, size_t{5}, size_t{16}, size_t{37}}) {
    const auto pixels = static_cast<int64_t>(count);
    const std::vector<float> ones(count, 1.0f);
    for (size_t at = 0; at < count; ++at) {
      std::vector<float> x = ones, y(count);
      x[at] = nan;
      GetParam()->relu(pixels, x.data(), y.data());
      expect_nan_at(y, at, "relu");
      for (const bool relu : {false, true}) {
        GetParam()->add(pixels, x.data(), ones.data(), y.data(), relu);
        expect_nan_at(y, at, "add");
        GetParam()->add(pixels, ones.data(), x.data(), y.data(), relu);
        expect_nan_at(y, at, "add");
        const float scale = 2, shift = 1;
        GetParam()->affine({1, pixels, pixels}, &scale, &shift, x.data(), y.data(), relu);
        expect_nan_at(y, at, "affine");
        std::vector<float> sum(1);
        GetParam()->linear(pixels, 1, ones.data(), nullptr, x.data(), sum.data(), relu);
        expect_nan_at(sum, 0, "linear");
      }
    }
  }
}

TEST_P(Kernels, NaNComesThroughMaxPools) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  PoolShape shape;
  shape.in_h = shape.in_w = 9;
  shape.kernel_h = shape.kernel_w = 3;
  shape.stride_h = shape.stride_w = 2;
  shape.padding_h = shape.padding_w = 1;
  shape.out_h = shape.out_w = 5;
  for (size_t at = 0; at < 81; ++at) {
    std::vector<float> x(81, 1.0f), y(25), expected(25);
    x[at] = nan;
    GetParam()->pool(shape, x.data(), 81, y.data(), 25);
    reference::pool(shape, x.data(), expected.data());
    const int64_t row = static_cast<int64_t>(at) / 9, column = static_cast<int64_t>(at) % 9;
    for (int64_t i = 0; i < 25; ++i) {
      const bool covers = std::abs(i / 5 * 2 - row) <= 1 && std::abs(i % 5 * 2 - column) <= 1;
      ASSERT_EQ(std::isnan(y[static_cast<size_t>(i)]), covers)
          << GetParam()->name << " pixel " << at << " output " << i;
      ASSERT_EQ(std::isnan(expected[static_cast<size_t>(i)]), covers) << "reference";
    }
  }
}

// The kernel's centre alone: output i is input i, for every register tile's width.
TEST_P(Kernels, NaNComesThroughConvolutionsWithRelu) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ConvShape shape;
  shape.in_h = 5;
  shape.in_w = 13;
  shape.kernel_h = shape.kernel_w = 3;
  shape.padding_h = shape.padding_w = 1;
  shape.out = 4;
  shape.taps = 1;
  shape.share_outputs = 4;
  const std::vector<float> weight(4, 1.0f);
  const uint16_t centre = 4;
  const int64_t plane = 80;
  for (int outputs = 1; outputs <= kMaxOutputs; ++outputs) {
    const ConvPlan plan(shape, {weight.data(), &centre, nullptr}, {outputs, kMaxVectors, 1, 64, false}, *GetParam());
    auto scratch = aligned_array<float>(plan.scratch_floats());
    for (const bool in_residual : {false, true}) {
      for (size_t at = 0; at < 65; ++at) {
        std::vector<float> x(65, 1.0f), residual(4 * 80, 1.0f), y(4 * 80 + 16);
        (in_residual ? residual[80 + at] : x[at]) = nan;
        ConvIo io;
        io.x = x.data();
        io.x_plane = 65;
        io.y = y.data();
        io.y_plane = plane;
        io.residual = residual.data();
        io.residual_plane = plane;
        io.relu = true;
        run_conv(*GetParam(), plan, io, scratch.get());
        for (size_t d = 0; d < 4; ++d) {
          for (size_t i = 0; i < 65; ++i) {
            ASSERT_EQ(std::isnan(y[d * 80 + i]), i == at && (!in_residual || d == 1)) << GetParam()->name;
          }
        }
      }
    }
  }
}

// Without a ReLU there is no least value.
TEST_P(Kernels, MinusInfinityComesThroughSums) {
  const float low = -std::numeric_limits<float>::infinity(), scale = 1, shift = 0;
  const std::vector<float> x(19, low), ones(19, 1.0f);
  std::vector<float> y(19);
  GetParam()->add(19, x.data(), ones.data(), y.data(), false);
  EXPECT_EQ(y, x);
  GetParam()->affine({1, 19, 19}, &scale, &shift, x.data(), y.data(), false);
  EXPECT_EQ(y, x);
  GetParam()->relu(19, x.data(), y.data());
  EXPECT_EQ(y, std::vector<float>(19, 0.0f));
}

INSTANTIATE_TEST_SUITE_P(Targets, Kernels, ::testing::ValuesIn(kernel_sets()),
                         [](const auto& target) { return target.param->name; });

}  // namespace
}  // namespace onetap
