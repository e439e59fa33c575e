#include "onetap/emit/c_conv.h"

#include "onetap/base/fail.h"
#include "onetap/graph/tap_layout.h"

#include <algorithm>

namespace onetap {
namespace {

constexpr int64_t kWord = ConvForm::kWord;
constexpr int64_t kPair = 2;  // outputs

// Calls each(output, block, tap, input) for the weights in file order of [output][block][tap][input].
template <typename T>
std::vector<T> in_blocks(const ConvForm& form, const T* weight) {
  std::vector<T> packed;
  for (int64_t d = 0; d < form.outputs; ++d) {
    for (int64_t block = 0; block < form.blocks; ++block) {
      const int64_t end = std::min(form.inputs, (block + 1) * form.block_inputs);
      for (int64_t tap = 0; tap < form.taps; ++tap) {
        if (form.is_empty(d, block * form.block_inputs, tap)) continue;
        for (int64_t c = block * form.block_inputs; c < end; ++c) {
          packed.push_back(weight[(d * form.inputs + c) * form.taps + tap]);
        }
      }
    }
  }
  return packed;
}

}  // namespace

ConvForm::ConvForm(const TapNet& net, const Node& node) {
  const LayerTensors& tensors = net.tensors(node);
  weight = &tensors.weight;
  if (!tensors.bias.empty()) bias = &tensors.bias;
  outputs = node.shape[0];
  share_outputs = outputs;
  if (node.op == Op::kAffine) {
    groups = outputs;
    return;
  }
  inputs = in_channels(net.graph, node) / node.groups;
  groups = node.groups;
  block_inputs = inputs;
  if (node.op == Op::kConv) taps = node.kernel.area();
  if (node.op != Op::kTapConv) return;
  layout = tap_layout(net.graph, node);
  taps = layout.taps;
  block_inputs = std::min(layout.share_inputs, inputs);
  blocks = layout.input_blocks();
  share_outputs = std::min(layout.share_outputs, outputs);
  codes = &tensors.positions;
}

bool ConvForm::is_empty(int64_t output, int64_t input, int64_t tap) const {
  if (codes == nullptr || !layout.may_be_empty) return false;
  return (*codes)[static_cast<size_t>(layout.first_code(output, input) + tap)] == layout.none();
}

bool ConvForm::has_words() const {
  const bool inputs_fit = block_inputs % kWord == 0 || block_inputs == inputs;
  return groups == 1 && inputs_fit && (share_outputs % kPair == 0 || share_outputs == outputs);
}

int64_t ConvForm::places() const {
  const int64_t unit = has_words() ? kWord : 1;
  return taps * ((inputs + unit - 1) / unit);
}

std::vector<float> float_weights(const ConvForm& form, const Node& node) {
  return in_blocks(form, floats_of(node, *form.weight));
}

std::vector<int8_t> int8_weights(const ConvForm& form) {
  std::vector<int8_t> packed = in_blocks(form, form.weight->data<int8_t>());
  packed.resize(packed.size() + kWord - 1);  // read as words, the last ones too
  return packed;
}

std::vector<int8_t> int8_words(const ConvForm& form) {
  const auto* weight = form.weight->data<int8_t>();
  std::vector<int8_t> packed;
  const auto add_word = [&](int64_t d, int64_t c, int64_t end, int64_t tap) {
    for (int64_t i = c; i < c + kWord; ++i) {
      packed.push_back(d < form.outputs && i < end ? weight[(d * form.inputs + i) * form.taps + tap] : int8_t{0});
    }
  };
  for (int64_t first = 0; first < form.outputs; first += kPair) {
    for (int64_t block = 0; block < form.blocks; ++block) {
      const int64_t end = std::min(form.inputs, (block + 1) * form.block_inputs);
      for (int64_t tap = 0; tap < form.taps; ++tap) {
        if (form.is_empty(first, block * form.block_inputs, tap)) continue;
        for (int64_t c = block * form.block_inputs; c < end; c += kWord) {
          for (int64_t d = first; d < first + kPair; ++d) add_word(d, c, end, tap);
        }
      }
    }
  }
  return packed;
}

std::vector<int8_t> int8_image(const ConvForm& form) {
  const auto* weight = form.weight->data<int8_t>();
  std::vector<std::pair<int64_t, int64_t>> order;  // taps and inputs, two of each half of a word
  for (int64_t tap = 0; tap < form.taps; ++tap) {
    order.push_back({tap, 0});
    order.push_back({tap, 2});
  }
  for (int64_t tap = 0; tap < form.taps; ++tap) order.push_back({tap, 1});
  std::vector<int8_t> packed;
  for (int64_t first = 0; first < form.outputs; first += kPair) {
    for (size_t word = 0; word < order.size(); word += kWord) {
      for (int64_t d = first; d < first + kPair; ++d) {
        for (const size_t i : {word, word + 2, word + 1, word + 3}) {
          const bool is_there = d < form.outputs && i < order.size();
          packed.push_back(is_there ? weight[(d * form.inputs + order[i].second) * form.taps + order[i].first]
                                    : int8_t{0});
        }
      }
    }
  }
  return packed;
}

std::vector<int32_t> int8_starts(const ConvForm& form, int bias_shift, bool moved) {
  if (form.bias == nullptr && !moved) return {};
  const auto* weight = form.weight->data<int8_t>();
  std::vector<int32_t> starts;
  for (int64_t d = 0; d < form.outputs; ++d) {
    int64_t start = form.bias == nullptr ? 0 : int64_t{form.bias->data<int16_t>()[d]} * (int64_t{1} << bias_shift);
    for (int64_t c = 0; moved && c < form.inputs; ++c) {
      for (int64_t tap = 0; tap < form.taps; ++tap) {
        if (form.is_empty(d, c, tap)) continue;
        start += 128 * int64_t{weight[(d * form.inputs + c) * form.taps + tap]};
      }
    }
    starts.push_back(static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(start))));
  }
  return starts;
}

std::vector<uint8_t> packed_codes(const std::vector<uint16_t>& codes, int bits, size_t row) {
  std::vector<uint8_t> packed;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (bits == 8 || i % row % 2 == 0) {
      packed.push_back(static_cast<uint8_t>(codes[i]));
    } else {
      packed.back() = static_cast<uint8_t>(packed.back() | codes[i] << 4);
    }
  }
  return packed;
}

}  // namespace onetap
