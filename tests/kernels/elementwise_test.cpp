#include "tests/kernels/conv_case.h"

#include <limits>

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

TEST_P(Kernels, TakesRowsApart) {
  for (int64_t width = 1; width <= 70; ++width) {
    for (const int64_t step : {1, 2, 3}) {
      std::vector<float> row(static_cast<size_t>(width));
      std::iota(row.begin(), row.end(), 1.0f);
      const int64_t part = (width + step - 1) / step;
      std::vector<float> parts(static_cast<size_t>(step * part), -1.0f);
      GetParam()->take_apart(width, step, row.data(), parts.data(), part);
      for (int64_t k = 0; k < step; ++k) {
        for (int64_t i = 0; i < part; ++i) {
          const int64_t from = i * step + k;
          ASSERT_EQ(parts[static_cast<size_t>(k * part + i)], from < width ? static_cast<float>(from + 1) : 0.0f);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Kernels, ::testing::ValuesIn(kernel_sets()),
                         [](const auto& target) { return target.param->name; });

}  // namespace
}  // namespace onetap
