// How large the numbers of a value are, over many images: what a scale is chosen from.
#pragma once

#include <cstdint>
#include <vector>

namespace onetap {

enum class CalibrationMethod {
  kMinMax,      // the largest magnitude seen
  kPercentile,  // a magnitude that few numbers pass
  kMse          // the one of least squared error
};

// Magnitudes in bins of equal width, a power of two that grows with the largest of them: what is counted does not
// depend on the order in which images come, or on how they are spread over threads.
class ValueHistogram {
 public:
  ValueHistogram();

  // kData naming `what` if one of them is not finite.
  void add(const float* values, int64_t count, const char* what);
  void add(const ValueHistogram& other);

  double largest() const { return largest_; }
  // The magnitude that the largest of `steps` steps above 0 should stand for; 0 if all numbers were 0.
  double clip(CalibrationMethod method, double percentile, int steps) const;

 private:
  void widen(double magnitude);
  double width() const;
  double at_percentile(double percentile) const;
  double of_least_error(int steps) const;

  int exponent_;  // bins are 2^exponent wide
  double largest_ = 0;
  int64_t count_ = 0;  // zeros included, which are in no bin
  std::vector<int64_t> bins_;
};

}  // namespace onetap
