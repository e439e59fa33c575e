#include "onetap/tap/weight_scale.h"

#include <cmath>

namespace onetap {
namespace {

// 2^(-k / 16), rounded to the nearest double: pow() may differ in the last bit from one C library to the next.
constexpr double kSixteenths[WeightScale::kStepsPerOctave] = {0x1p+0,
                                                              0x1.ea4afa2a490dap-1,
                                                              0x1.d5818dcfba487p-1,
                                                              0x1.c199bdd85529cp-1,
                                                              0x1.ae89f995ad3adp-1,
                                                              0x1.9c49182a3f090p-1,
                                                              0x1.8ace5422aa0dbp-1,
                                                              0x1.7a11473eb0187p-1,
                                                              0x1.6a09e667f3bcdp-1,
                                                              0x1.5ab07dd485429p-1,
                                                              0x1.4bfdad5362a27p-1,
                                                              0x1.3dea64c123422p-1,
                                                              0x1.306fe0a31b715p-1,
                                                              0x1.2387a6e756238p-1,
                                                              0x1.172b83c7d517bp-1,
                                                              0x1.0b5586cf9890fp-1};

}  // namespace

double WeightScale::of(int64_t output) const {
  const int step = steps[static_cast<size_t>(output)];
  return std::ldexp(static_cast<double>(base) * kSixteenths[step % kStepsPerOctave], -(step / kStepsPerOctave));
}

}  // namespace onetap
