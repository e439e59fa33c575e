#include "onetap/quant/value_histogram.h"

#include "onetap/base/error.h"
#include "onetap/base/random.h"
#include "tests/support/support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace onetap;
using namespace onetap::testing;

namespace {

using Values = std::vector<float>;

ValueHistogram counted(const Values& values) {
  ValueHistogram histogram;
  histogram.add(values.data(), static_cast<int64_t>(values.size()), "v");
  return histogram;
}

double percentile_of(const ValueHistogram& histogram, double percentile) {
  return histogram.clip(CalibrationMethod::kPercentile, percentile, 127);
}

// Of rounding every value to the nearest of `steps` steps up to the bound, and of cutting what lies above it.
double squared_error(const Values& values, double bound, int steps) {
  double sum = 0;
  for (const float value : values) {
    const double step = bound / steps, magnitude = std::fabs(value);
    const double error = magnitude - std::min<double>(steps, std::nearbyint(magnitude / step)) * step;
    sum += error * error;
  }
  return sum;
}

// About normal, of both signs, with a few values far outside: what activations look like.
Values bell(uint64_t seed, int64_t count, double outliers = 0) {
  Random random(seed, Purpose::kTest);
  Values values;
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int k = 0; k < 12; ++k) sum += random.uniform(-0.5f, 0.5f);
    values.push_back(random.uniform(0, 1) < outliers ? 4 * sum : sum);
  }
  return values;
}

void expect_same(const ValueHistogram& got, const ValueHistogram& expected, const char* what) {
  EXPECT_EQ(got.largest(), expected.largest()) << what;
  for (const double percentile : {50.0, 80.0, 99.0, 99.9, 100.0}) {
    EXPECT_EQ(percentile_of(got, percentile), percentile_of(expected, percentile)) << what << ", " << percentile;
  }
  for (const int steps : {127, 255}) {
    EXPECT_EQ(got.clip(CalibrationMethod::kMse, 0, steps), expected.clip(CalibrationMethod::kMse, 0, steps)) << what;
  }
}

}  // namespace

// Magnitudes 1 to 1000: bins are a quarter wide.
TEST(ValueHistogram, APercentileIsExceededByTheRest) {
  Values values;
  for (int i = 1; i <= 1000; ++i) values.push_back(static_cast<float>(i % 2 == 0 ? i : -i));
  ValueHistogram histogram = counted(values);
  EXPECT_EQ(histogram.largest(), 1000);
  EXPECT_EQ(histogram.clip(CalibrationMethod::kMinMax, 50, 127), 1000);
  EXPECT_EQ(percentile_of(histogram, 100), 1000);
  EXPECT_EQ(percentile_of(histogram, 99), 990.25);  // 991 to 1000 exceed it
  EXPECT_EQ(percentile_of(histogram, 50), 500.25);
  // Zeros are numbers too: one percent of 2000 are the 20 largest.
  const Values zeros(1000, 0.0f);
  histogram.add(zeros.data(), 1000, "v");
  EXPECT_EQ(percentile_of(histogram, 99), 980.25);
}

TEST(ValueHistogram, TheBoundOfLeastErrorIsThatOfTryingThemAll) {
  for (const double outliers : {0.0, 0.001}) {
    const Values values = bell(3, 6000, outliers);
    const ValueHistogram histogram = counted(values);
    double last = 0;
    for (const int steps : {15, 127, 255}) {
      const double bound = histogram.clip(CalibrationMethod::kMse, 0, steps);
      EXPECT_GT(bound, last) << "with fewer steps, cutting costs less than longer steps do";
      last = bound;
      double least = std::numeric_limits<double>::infinity();
      for (int part = 200; part <= 1000; ++part) {
        least = std::min(least, squared_error(values, histogram.largest() * part / 1000, steps));
      }
      const double got = squared_error(values, bound, steps);
      EXPECT_LE(got, 1.03 * least) << steps << " steps, outliers " << outliers;  // it tries fewer bounds, by bins
      if (steps == 15) {
        EXPECT_LT(got, 0.7 * squared_error(values, histogram.largest(), steps));
      }
    }
  }
}

// Numbers that so many steps hold exactly: there is nothing to gain from a lower bound.
TEST(ValueHistogram, StepsThatHoldEveryNumberKeepTheLargest) {
  for (const int steps : {127, 255}) {
    Values values;
    for (int i = 0; i <= steps; ++i) values.push_back(static_cast<float>(i));
    EXPECT_EQ(counted(values).clip(CalibrationMethod::kMse, 0, steps), steps);
  }
}

TEST(ValueHistogram, WhatIsCountedDoesNotDependOnTheOrder) {
  // Each part is far larger than the one before: bins widen by several powers of two.
  std::vector<Values> parts;
  Values whole;
  for (const float factor : {1e-30f, 0.01f, 1.0f, 7.0f, 3000.0f}) {
    Values part = bell(static_cast<uint64_t>(parts.size()), 500);
    for (float& value : part) value *= factor;
    part.push_back(0);
    whole.insert(whole.end(), part.begin(), part.end());
    parts.push_back(part);
  }
  const ValueHistogram expected = counted(whole);
  ValueHistogram rising, falling, merged, merged_back, of_zeros;
  of_zeros.add(counted({0.0f, 0.0f}));
  for (size_t i = 0; i < parts.size(); ++i) {
    const Values& last = parts[parts.size() - 1 - i];
    rising.add(parts[i].data(), static_cast<int64_t>(parts[i].size()), "v");
    falling.add(last.data(), static_cast<int64_t>(last.size()), "v");
    merged.add(counted(parts[i]));
    merged_back.add(counted(last));
  }
  expect_same(rising, expected, "small values first");
  expect_same(falling, expected, "large values first");
  expect_same(merged, expected, "merged, small values first");
  expect_same(merged_back, expected, "merged, large values first");
  // Zeros alone have no bin, but are counted.
  ValueHistogram with_zeros = expected;
  with_zeros.add(of_zeros);
  whole.insert(whole.end(), {0.0f, 0.0f});
  expect_same(with_zeros, counted(whole), "with zeros");
}

TEST(ValueHistogram, ZerosAndTheSmallestNumbers) {
  for (const Values& values : {Values(), Values(10, 0.0f)}) {
    for (const auto method : {CalibrationMethod::kMinMax, CalibrationMethod::kPercentile, CalibrationMethod::kMse}) {
      EXPECT_EQ(counted(values).clip(method, 99, 127), 0);
    }
  }
  const float least = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::max();
  EXPECT_EQ(percentile_of(counted({least, 0.0f}), 100), least);
  EXPECT_EQ(counted({least, -most}).clip(CalibrationMethod::kMse, 0, 127), most);
}

TEST(ValueHistogram, NumbersThatAreNotFiniteAreAnErrorWithTheName) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    expect_error(ErrorKind::kData, "expected finite values of 'v', got", [&] { counted({1.0f, bad}); });
  }
}
