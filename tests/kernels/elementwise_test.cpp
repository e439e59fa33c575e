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

INSTANTIATE_TEST_SUITE_P(Targets, Kernels, ::testing::ValuesIn(kernel_sets()),
                         [](const auto& target) { return target.param->name; });

}  // namespace
}  // namespace onetap
