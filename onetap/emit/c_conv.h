// The weights of convolutions in the orders in which generated C reads them. Weights of empty taps are left out.
#pragma once

#include "onetap/base/tap_layout.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <vector>

namespace onetap {

// A convolution, or a linear or affine layer as one: [outputs, inputs, taps] weights, of blocks of inputs and outputs
// that have their positions in common. A dense one has all positions in order, and no codes.
struct ConvForm {
  static constexpr int64_t kWord = 4;  // inputs that are computed together

  ConvForm(const TapNet& net, const Node& node);

  int64_t outputs = 1, inputs = 1, groups = 1;  // inputs of a group
  int64_t taps = 1;                             // of a block
  int64_t block_inputs = 1, blocks = 1;
  int64_t share_outputs = 1;
  TapLayout layout;                              // of the codes: which of them a slice has
  const std::vector<uint16_t>* codes = nullptr;  // [block of outputs][block][tap]
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;

  bool is_empty(int64_t output, int64_t input, int64_t tap) const;
  int64_t row_codes() const { return blocks * taps; }  // of an output
  // Blocks of 2 outputs x 4 inputs with their positions in common: a word of inputs at a time.
  bool has_words() const;
  // Blocks of one word, and one tap.
  bool has_quads() const { return has_words() && codes != nullptr && block_inputs == kWord && taps == 1; }
  // Three inputs at every tap.
  bool has_image() const { return has_words() && codes == nullptr && inputs == 3; }
  // Places, of words or else of bytes, that all inputs of an output have.
  int64_t places() const;
};

// [output][block][tap][input].
std::vector<float> float_weights(const ConvForm& form, const Node& node);
std::vector<int8_t> int8_weights(const ConvForm& form);
// [2 outputs][block][tap][4 inputs][output][input], with zeros where outputs or inputs end before.
std::vector<int8_t> int8_words(const ConvForm& form);
// The same for an image's three inputs as DSP instructions read them: halves of words are inputs 0 and 2 of each tap,
// then input 1 of each two taps.
std::vector<int8_t> int8_image(const ConvForm& form);
// What sums of signed bytes start from: the bias, and for unsigned inputs, which then are 128 less, 128 times the sum
// of an output's weights. Modulo 2^32, as the sums. Empty where all would be zeros.
std::vector<int32_t> int8_starts(const ConvForm& form, int bias_shift, bool moved);

// At 4 or 8 bits each, the first in the lowest; `row` of them at a time begin with a whole byte.
std::vector<uint8_t> packed_codes(const std::vector<uint16_t>& codes, int bits, size_t row);

}  // namespace onetap
