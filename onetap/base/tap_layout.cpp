#include "onetap/base/tap_layout.h"

#include <algorithm>

namespace onetap {

int64_t TapLayout::slices_of(int64_t set) const {
  const int64_t first_output = set / input_blocks() * share_outputs;
  const int64_t first_input = set % input_blocks() * share_inputs;
  return std::min(share_outputs, outputs - first_output) * std::min(share_inputs, inputs - first_input);
}

int TapLayout::bits() const {
  int bits = 0;
  while ((int64_t{1} << bits) < alphabet()) ++bits;
  return bits;
}

std::vector<int64_t> count_slices(const TapLayout& layout, const std::vector<uint16_t>& codes) {
  std::vector<int64_t> counts(static_cast<size_t>(layout.positions), 0);
  for (int64_t i = 0; i < layout.codes(); ++i) {
    const uint16_t code = codes[static_cast<size_t>(i)];
    if (code != layout.none()) counts[code] += layout.slices_of(i / layout.taps);
  }
  return counts;
}

int64_t dropped_weights(const TapLayout& layout, const std::vector<uint16_t>& codes) {
  int64_t dropped = 0;
  for (int64_t i = 0; i < layout.codes(); ++i) {
    if (codes[static_cast<size_t>(i)] == layout.none()) dropped += layout.slices_of(i / layout.taps);
  }
  return dropped;
}

}  // namespace onetap
