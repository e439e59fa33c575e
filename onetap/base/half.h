// IEEE 754 half precision, without a compiler extension.
#pragma once

#include <cstdint>

namespace onetap {

// Rounds to nearest, ties to even; what is too large becomes infinity.
uint16_t half_from_float(float value);
float float_from_half(uint16_t half);

}  // namespace onetap
