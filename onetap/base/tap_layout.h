// Which kernel slices of a pruned convolution keep which positions: the one answer for files, counts, kernels, training
// and heat maps.
//
// A convolution of D outputs and C inputs (per group of channels) has D x C kernel slices of S positions. Blocks of
// `share_outputs` x `share_inputs` neighbouring slices have one *set* of `taps` positions in common; blocks at the ends
// are smaller where the sizes do not divide. A set's entries are codes: 0..S-1 are positions, rows first; where slices
// may be empty, code S is "none".
#pragma once

#include <cstdint>
#include <vector>

namespace onetap {

struct TapLayout {
  int64_t outputs = 1;    // D
  int64_t inputs = 1;     // C, per group of channels
  int64_t positions = 1;  // S
  int64_t taps = 1;       // entries of a set, and weights of a slice
  int64_t share_outputs = 1;
  int64_t share_inputs = 1;
  bool may_be_empty = false;
  int64_t dropped = 0;  // weights that empty entries leave out, as dropped_weights() counts them

  int64_t output_blocks() const { return blocks(outputs, share_outputs); }
  int64_t input_blocks() const { return blocks(inputs, share_inputs); }
  int64_t sets() const { return output_blocks() * input_blocks(); }
  int64_t set_of(int64_t output, int64_t input) const {
    return output / share_outputs * input_blocks() + input / share_inputs;
  }
  // Where the codes of a slice begin in a list of all sets' codes.
  int64_t first_code(int64_t output, int64_t input) const { return set_of(output, input) * taps; }
  int64_t codes() const { return sets() * taps; }
  int64_t slices() const { return outputs * inputs; }
  int64_t weights() const { return slices() * taps; }
  int64_t kept_weights() const { return weights() - dropped; }
  // Slices that a set stands for: the area of its block.
  int64_t slices_of(int64_t set) const;

  // Different codes; the code of an empty entry is the last of them.
  int64_t alphabet() const { return positions + (may_be_empty ? 1 : 0); }
  int64_t none() const { return positions; }
  // Bits that store one code: ceil(log2 alphabet).
  int bits() const;

  // [output blocks, input blocks, taps]: how codes lie in memory.
  std::vector<int64_t> code_shape() const { return {output_blocks(), input_blocks(), taps}; }

 private:
  static int64_t blocks(int64_t count, int64_t share) { return (count + share - 1) / share; }
};

// Slices that keep each position. A set counts as often as there are slices that have it; an empty entry not at all.
std::vector<int64_t> count_slices(const TapLayout& layout, const std::vector<uint16_t>& codes);

// Weights that the empty entries of these codes leave out: an entry has a weight in every slice of its set's block.
int64_t dropped_weights(const TapLayout& layout, const std::vector<uint16_t>& codes);

}  // namespace onetap
