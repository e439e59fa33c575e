// The codes of a layer's kept positions (base/tap_layout.h has what a code is): checked, packed into bits, spread out
// into dense weights, drawn at random. All of it for any layout.
#pragma once

#include "onetap/base/random.h"
#include "onetap/base/tap_layout.h"
#include "onetap/base/tensor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// kData naming `layer` unless there are layout.codes() of them, each below layout.alphabet() and ascending within a
// set. "None" is the largest code, so empty entries come last; it alone may come twice.
void check_codes(const TapLayout& layout, const std::vector<uint16_t>& codes, std::string_view layer);

// At `bits` bits each, the first in the lowest bits of the first byte, zeros after the last.
std::string pack_codes(const std::vector<uint16_t>& codes, int bits);
// kData naming `label` if a bit after the last code is set. `packed` has packed_bytes(count, bits) bytes.
std::vector<uint16_t> unpack_codes(std::string_view packed, size_t count, int bits, std::string_view label);
constexpr uint64_t packed_bytes(uint64_t count, int bits) {
  return (count * static_cast<uint64_t>(bits) + 7) / 8;
}

// The weights [outputs, inputs, taps] of a layer at their positions, zeros elsewhere: [outputs, inputs, positions].
template <typename T>  // float or int8_t
std::vector<T> spread_weights(const TapLayout& layout, const std::vector<uint16_t>& codes, const T* weight);

// The weights of a layer without those of empty entries, in the same order: [layout.kept_weights()]. Files hold these.
Tensor kept_weights(const TapLayout& layout, const std::vector<uint16_t>& codes, const Tensor& weight);
// The way back: [outputs, inputs, taps] with zeros for empty entries. `kept` has as many as the codes keep.
Tensor refill_weights(const TapLayout& layout, const std::vector<uint16_t>& codes, const Tensor& kept);
// Whether the weights of empty entries are 0, bit for bit.
bool dropped_are_zero(const TapLayout& layout, const std::vector<uint16_t>& codes, const Tensor& weight);

// Positions uniform in every set; where slices may be empty, about a quarter of the sets are.
std::vector<uint16_t> random_codes(const TapLayout& layout, Random& random);

}  // namespace onetap
