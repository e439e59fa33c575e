#include "onetap/base/half.h"

#include <cstring>

namespace onetap {
namespace {

constexpr int kSingleBias = 127, kHalfBias = 15;
constexpr int kDroppedBits = 23 - 10;

// Divides by 2^bits and rounds to nearest, ties to even.
uint32_t rounded_shift(uint32_t value, int bits) {
  const uint32_t half = uint32_t{1} << (bits - 1);
  const uint32_t odd = (value >> bits) & 1u;
  return (value + half - 1 + odd) >> bits;
}

}  // namespace

uint16_t half_from_float(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);  // not a number
  const int exponent = static_cast<int>(magnitude >> 23) - kSingleBias + kHalfBias;
  if (exponent >= 31) return static_cast<uint16_t>(sign | 0x7c00u);
  if (exponent <= 0) {  // below the normal range: the leading one becomes explicit
    if (exponent < -10) return sign;
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    return static_cast<uint16_t>(sign | rounded_shift(mantissa, kDroppedBits + 1 - exponent));
  }
  // A carry out of the mantissa runs into the exponent, which is what rounding up means there.
  const uint32_t joined = (static_cast<uint32_t>(exponent) << 23) | (magnitude & 0x7fffffu);
  return static_cast<uint16_t>(sign | rounded_shift(joined, kDroppedBits));
}

float float_from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  uint32_t bits = sign;
  if (exponent == 31) {
    bits |= 0x7f800000u | (mantissa << kDroppedBits);
  } else if (exponent != 0) {
    bits |= ((exponent + kSingleBias - kHalfBias) << 23) | (mantissa << kDroppedBits);
  } else if (mantissa != 0) {
    int shift = 0;
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      ++shift;
    }
    bits |= (static_cast<uint32_t>(1 + kSingleBias - kHalfBias - shift) << 23) | ((mantissa & 0x3ffu) << kDroppedBits);
  }
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace onetap
