#include "onetap/quant/value_histogram.h"

#include "onetap/base/fail.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {
namespace {

constexpr size_t kBins = 4096;
constexpr int kSmallest = -160;  // below every float that is not 0

}  // namespace

ValueHistogram::ValueHistogram() : exponent_(kSmallest), bins_(kBins, 0) {}

double ValueHistogram::width() const {
  return std::ldexp(1.0, exponent_);
}

// Bins in pairs become one, until the magnitude has a bin.
void ValueHistogram::widen(double magnitude) {
  if (largest_ == 0 && magnitude > 0) {  // nothing to move yet
    exponent_ = std::max(exponent_, std::ilogb(magnitude) - std::ilogb(static_cast<double>(kBins)) + 1);
  }
  while (magnitude >= width() * static_cast<double>(kBins)) {
    for (size_t i = 0; i < kBins; ++i) {
      bins_[i] = i < kBins / 2 ? bins_[2 * i] + bins_[2 * i + 1] : 0;
    }
    ++exponent_;
  }
  largest_ = std::max(largest_, magnitude);
}

void ValueHistogram::add(const float* values, int64_t count, const char* what) {
  double most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(static_cast<double>(values[i]));
    if (!std::isfinite(magnitude)) fail_data("[quant] expected finite values of '{}', got {}", what, values[i]);
    most = std::max(most, magnitude);
  }
  widen(most);
  count_ += count;
  const double per_bin = 1 / width();
  for (int64_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(static_cast<double>(values[i]));
    if (magnitude > 0) ++bins_[static_cast<size_t>(magnitude * per_bin)];
  }
}

void ValueHistogram::add(const ValueHistogram& other) {
  if (other.largest_ > 0) widen(other.largest_);
  count_ += other.count_;
  if (other.largest_ == 0) return;
  const int apart = exponent_ - other.exponent_;  // at least 0: widths follow from the largest magnitude
  for (size_t i = 0; i < kBins; ++i) {
    if (other.bins_[i] > 0) bins_[apart < 64 ? i >> apart : 0] += other.bins_[i];
  }
}

double ValueHistogram::clip(CalibrationMethod method, double percentile, int steps) const {
  if (largest_ == 0 || method == CalibrationMethod::kMinMax) return largest_;
  return method == CalibrationMethod::kPercentile ? at_percentile(percentile) : of_least_error(steps);
}

double ValueHistogram::at_percentile(double percentile) const {
  const double above = static_cast<double>(count_) * (1 - percentile / 100);
  double passed = 0;
  for (size_t i = kBins; i-- > 0;) {
    passed += static_cast<double>(bins_[i]);
    if (passed > above) return std::min(largest_, width() * static_cast<double>(i + 1));
  }
  return largest_;
}

// Every bin's middle is rounded to a step, or cut to the bound; zeros are exact.
double ValueHistogram::of_least_error(int steps) const {
  constexpr int kParts = 128;  // bounds that are tried: from a quarter of the largest magnitude on
  double best = largest_, least = std::numeric_limits<double>::infinity();
  for (int part = kParts; part >= kParts / 4; --part) {
    const double bound = largest_ * part / kParts, step = bound / steps;
    double error = 0;
    for (size_t i = 0; i < kBins && error < least; ++i) {
      if (bins_[i] == 0) continue;
      const double middle = width() * (static_cast<double>(i) + 0.5);
      const double rounded = std::min(std::floor(middle / step + 0.5), static_cast<double>(steps)) * step;
      error += static_cast<double>(bins_[i]) * (middle - rounded) * (middle - rounded);
    }
    if (error >= least) continue;
    least = error;
    best = bound;
  }
  return best;
}

}  // namespace onetap
