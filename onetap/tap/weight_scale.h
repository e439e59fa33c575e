// What the bytes of an int8 layer's weights mean. docs/quantization.md has the whole definition.
#pragma once

#include <cstdint>
#include <vector>

namespace onetap {

// A weight q of output d stands for q * of(d). Scales lie on a grid of sixteenths of an octave, so that one byte per
// output says which: the largest weight of an output then has 121 to 127 steps.
struct WeightScale {
  static constexpr int kStepsPerOctave = 16;

  float base = 0;              // of the layer; positive and finite
  std::vector<uint8_t> steps;  // per output: how many sixteenths of an octave below the base
  // The bias of output d, in units of (scale of the input) * of(d), is bias[d] << bias_shift: the tensor itself is I16.
  int bias_shift = 0;

  // base * 2^(-steps[d] / 16): the same double on every machine.
  double of(int64_t output) const;

  bool empty() const { return steps.empty(); }
  bool operator==(const WeightScale& other) const {
    return base == other.base && steps == other.steps && bias_shift == other.bias_shift;
  }
};

}  // namespace onetap
