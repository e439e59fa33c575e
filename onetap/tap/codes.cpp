#include "onetap/tap/codes.h"

#include "onetap/base/fail.h"

#include <algorithm>
#include <cstring>

namespace onetap {
namespace {

// Calls visit(index of a weight in [outputs, inputs, taps]) for each that has a position, in order.
template <typename Visit>
void visit_kept(const TapLayout& layout, const std::vector<uint16_t>& codes, Visit&& visit) {
  for (int64_t slice = 0; slice < layout.slices(); ++slice) {
    const int64_t first = layout.first_code(slice / layout.inputs, slice % layout.inputs);
    for (int64_t t = 0; t < layout.taps; ++t) {
      if (codes[static_cast<size_t>(first + t)] != layout.none()) visit(static_cast<size_t>(slice * layout.taps + t));
    }
  }
}

}  // namespace

void check_codes(const TapLayout& layout, const std::vector<uint16_t>& codes, std::string_view layer) {
  if (codes.size() != static_cast<size_t>(layout.codes())) {
    fail_data("[tap] expected {} values of positions, got {} ({})", layout.codes(), codes.size(), layer);
  }
  const auto taps = static_cast<size_t>(layout.taps);
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] >= layout.alphabet()) {
      fail_data("[tap] expected positions < {}, got {} ({})", layout.alphabet(), codes[i], layer);
    }
    const bool both_empty = i > 0 && codes[i] == layout.none() && codes[i - 1] == layout.none();
    if (i % taps != 0 && codes[i] <= codes[i - 1] && !both_empty) {
      fail_data("[tap] expected ascending positions in a slice, got {} after {} ({})", codes[i], codes[i - 1], layer);
    }
  }
}

std::string pack_codes(const std::vector<uint16_t>& codes, int bits) {
  const auto width = static_cast<size_t>(bits);
  std::string packed(packed_bytes(codes.size(), bits), '\0');
  for (size_t i = 0; i < codes.size(); ++i) {
    for (size_t b = 0; b < width; ++b) {
      if (((codes[i] >> b) & 1u) == 0) continue;
      const size_t at = i * width + b;
      packed[at / 8] = static_cast<char>(static_cast<uint8_t>(packed[at / 8]) | (1u << (at % 8)));
    }
  }
  return packed;
}

std::vector<uint16_t> unpack_codes(std::string_view packed, size_t count, int bits, std::string_view label) {
  const auto width = static_cast<size_t>(bits);
  const auto bit = [&](size_t at) { return (static_cast<uint8_t>(packed[at / 8]) >> (at % 8)) & 1u; };
  std::vector<uint16_t> codes(count, 0);
  for (size_t i = 0; i < count; ++i) {
    for (size_t b = 0; b < width; ++b) codes[i] = static_cast<uint16_t>(codes[i] | (bit(i * width + b) << b));
  }
  for (size_t at = count * width; at < packed.size() * 8; ++at) {
    if (bit(at) != 0) fail_data("[tap] expected zero bits after the last code ({})", label);
  }
  return codes;
}

template <typename T>
std::vector<T> spread_weights(const TapLayout& layout, const std::vector<uint16_t>& codes, const T* weight) {
  std::vector<T> dense(static_cast<size_t>(layout.slices() * layout.positions), T{0});
  for (int64_t slice = 0; slice < layout.slices(); ++slice) {
    const int64_t first = layout.first_code(slice / layout.inputs, slice % layout.inputs);
    for (int64_t t = 0; t < layout.taps; ++t) {
      const uint16_t code = codes[static_cast<size_t>(first + t)];
      if (code == layout.none()) continue;
      dense[static_cast<size_t>(slice * layout.positions + code)] = weight[slice * layout.taps + t];
    }
  }
  return dense;
}
template std::vector<float> spread_weights(const TapLayout& layout, const std::vector<uint16_t>& codes,
                                           const float* weight);
template std::vector<int8_t> spread_weights(const TapLayout& layout, const std::vector<uint16_t>& codes,
                                            const int8_t* weight);

Tensor kept_weights(const TapLayout& layout, const std::vector<uint16_t>& codes, const Tensor& weight) {
  Tensor kept(weight.dtype(), {layout.weights() - dropped_weights(layout, codes)});
  const size_t bytes = dtype_bytes(weight.dtype());
  std::byte* to = kept.raw();
  const std::byte* from = weight.raw();
  visit_kept(layout, codes, [&](size_t i) {
    std::memcpy(to, from + i * bytes, bytes);
    to += bytes;
  });
  return kept;
}

Tensor refill_weights(const TapLayout& layout, const std::vector<uint16_t>& codes, const Tensor& kept) {
  Tensor weight(kept.dtype(), {layout.outputs, layout.inputs, layout.taps});
  const size_t bytes = dtype_bytes(kept.dtype());
  std::byte* to = weight.raw();
  const std::byte* from = kept.raw();
  visit_kept(layout, codes, [&](size_t i) {
    std::memcpy(to + i * bytes, from, bytes);
    from += bytes;
  });
  return weight;
}

bool dropped_are_zero(const TapLayout& layout, const std::vector<uint16_t>& codes, const Tensor& weight) {
  const size_t bytes = dtype_bytes(weight.dtype());
  for (int64_t slice = 0; slice < layout.slices(); ++slice) {
    const int64_t first = layout.first_code(slice / layout.inputs, slice % layout.inputs);
    for (int64_t t = 0; t < layout.taps; ++t) {
      if (codes[static_cast<size_t>(first + t)] != layout.none()) continue;
      const std::byte* value = weight.raw() + static_cast<size_t>(slice * layout.taps + t) * bytes;
      if (std::any_of(value, value + bytes, [](std::byte byte) { return byte != std::byte{0}; })) return false;
    }
  }
  return true;
}

std::vector<uint16_t> random_codes(const TapLayout& layout, Random& random) {
  const auto positions = static_cast<uint16_t>(layout.positions);
  const auto taps = static_cast<size_t>(layout.taps);
  // Of a million sets; a quarter where the layout does not say.
  constexpr uint32_t kMillion = 1'000'000;
  const double share =
      layout.dropped > 0 ? static_cast<double>(layout.dropped) / static_cast<double>(layout.weights()) : 0.25;
  const auto empties = static_cast<uint32_t>(share * kMillion);
  std::vector<uint16_t> codes;
  for (int64_t set = 0; set < layout.sets(); ++set) {
    const bool empty = layout.may_be_empty && random.below(kMillion) < empties;
    const auto kept = empty ? std::vector<uint16_t>(taps, positions) : random_choice(positions, taps, random);
    codes.insert(codes.end(), kept.begin(), kept.end());
  }
  return codes;
}

}  // namespace onetap
