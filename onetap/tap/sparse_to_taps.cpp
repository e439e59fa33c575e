#include "onetap/tap/sparse_to_taps.h"

#include "onetap/base/fail.h"
#include "onetap/graph/method_table.h"
#include "onetap/tap/file_limits.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <utility>

namespace onetap {
namespace {

constexpr size_t kMostPositions = 256;
using Mask = std::bitset<kMostPositions>;  // of the positions that are not zero

// Masks of slices or of blocks, [rows, columns].
struct MaskGrid {
  int64_t rows = 0, columns = 0;
  std::vector<Mask> masks;

  const Mask& at(int64_t row, int64_t column) const { return masks[static_cast<size_t>(row * columns + column)]; }
};

template <typename T>  // float or int8_t
MaskGrid slice_masks(const T* weight, int64_t outputs, int64_t inputs, int64_t positions) {
  MaskGrid grid{outputs, inputs, std::vector<Mask>(static_cast<size_t>(outputs * inputs))};
  for (Mask& mask : grid.masks) {
    for (int64_t s = 0; s < positions; ++s) {
      if (*weight++ != 0) mask.set(static_cast<size_t>(s));
    }
  }
  return grid;
}

// Neighbouring columns (inputs) united, `share` at a time.
MaskGrid unite_columns(const MaskGrid& slices, int64_t share) {
  if (share == 1) return slices;
  MaskGrid grid{slices.rows, (slices.columns + share - 1) / share, {}};
  grid.masks.resize(static_cast<size_t>(grid.rows * grid.columns));
  for (int64_t row = 0; row < slices.rows; ++row) {
    for (int64_t column = 0; column < slices.columns; ++column) {
      grid.masks[static_cast<size_t>(row * grid.columns + column / share)] |= slices.at(row, column);
    }
  }
  return grid;
}

// Calls visit(set, mask) for the blocks of a layout, whose columns are united already.
template <typename Visit>
void for_each_block(const MaskGrid& united, const TapLayout& layout, Visit&& visit) {
  std::vector<Mask> blocks(static_cast<size_t>(united.columns));
  for (int64_t block = 0; block < layout.output_blocks(); ++block) {
    std::fill(blocks.begin(), blocks.end(), Mask{});
    const int64_t end = std::min(united.rows, (block + 1) * layout.share_outputs);
    for (int64_t row = block * layout.share_outputs; row < end; ++row) {
      for (int64_t column = 0; column < united.columns; ++column) {
        blocks[static_cast<size_t>(column)] |= united.at(row, column);
      }
    }
    for (int64_t column = 0; column < united.columns; ++column) {
      visit(block * united.columns + column, blocks[static_cast<size_t>(column)]);
    }
  }
}

// Block sizes that are tried: small ones, then every fourth, then all.
std::vector<int64_t> block_sizes(int64_t extent) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < extent && size <= 64; size += size < 16 ? 1 : 4) sizes.push_back(size);
  sizes.push_back(extent);
  return sizes;
}

// Sets taps and dropped of a layout that has its blocks, as the masks need them.
void fit(TapLayout& layout, const MaskGrid& united) {
  int64_t most = 1, kept = 0;
  for_each_block(united, layout, [&](int64_t set, const Mask& mask) {
    const auto count = static_cast<int64_t>(mask.count());
    most = std::max(most, count);
    kept += count * layout.slices_of(set);
  });
  layout.taps = most;
  layout.dropped = layout.weights() - kept;
  layout.may_be_empty = layout.dropped > 0;
}

int64_t file_bits(const TapLayout& layout, int64_t weight_bits) {
  return layout.kept_weights() * weight_bits + layout.codes() * layout.bits();
}

// Codes of a layout that fits the weights, ascending in every set, empty entries last.
std::vector<uint16_t> codes_of(const TapLayout& layout, const MaskGrid& united) {
  std::vector<uint16_t> codes(static_cast<size_t>(layout.codes()), static_cast<uint16_t>(layout.none()));
  for_each_block(united, layout, [&](int64_t set, const Mask& mask) {
    auto code = codes.begin() + static_cast<std::ptrdiff_t>(set * layout.taps);
    for (int64_t s = 0; s < layout.positions; ++s) {
      if (mask.test(static_cast<size_t>(s))) *code++ = static_cast<uint16_t>(s);
    }
  });
  return codes;
}

// [outputs, inputs, positions] to [outputs, inputs, taps]; 0 at empty entries.
template <typename T>
std::vector<T> gather_weights(const TapLayout& layout, const std::vector<uint16_t>& codes, const T* dense) {
  std::vector<T> weights;
  weights.reserve(static_cast<size_t>(layout.weights()));
  for (int64_t slice = 0; slice < layout.slices(); ++slice) {
    const int64_t first = layout.first_code(slice / layout.inputs, slice % layout.inputs);
    for (int64_t t = 0; t < layout.taps; ++t) {
      const int64_t code = codes[static_cast<size_t>(first + t)];
      weights.push_back(code == layout.none() ? T{0} : dense[slice * layout.positions + code]);
    }
  }
  return weights;
}

void check(const SparseToTapsOptions& options) {
  if (!(options.max_density > 0 && options.max_density <= 1)) {
    fail_usage("[tap] expected a density above 0 and at most 1, got {}", options.max_density);
  }
}

std::optional<TapLayout> tap_layout_of(const TapNet& net, const Node& node, const SparseToTapsOptions& options) {
  if (node.op != Op::kConv || !node.method.is_dense()) return std::nullopt;
  const std::vector<std::string>& layers = options.layers;
  if (!layers.empty() && std::find(layers.begin(), layers.end(), node.name) == layers.end()) return std::nullopt;
  const Tensor& weight = net.tensors(node).weight;
  const auto layout_of = [&](const auto* values) {
    return best_tap_layout(values, node.out, weight.shape()[1], node.kernel.area(), options);
  };
  return weight.dtype() == DType::kI8 ? layout_of(weight.data<int8_t>()) : layout_of(weight.data<float>());
}

// Enters a position whose weights are all 0 into its set, in order. False if the set has it, or has no empty entry.
bool insert_code(std::vector<uint16_t>& codes, const TapLayout& layout, int64_t set, int64_t code) {
  const auto begin = codes.begin() + static_cast<std::ptrdiff_t>(set * layout.taps);
  const auto end = begin + static_cast<std::ptrdiff_t>(layout.taps);
  const auto place = std::lower_bound(begin, end, static_cast<uint16_t>(code));
  if (place == end || *place == code || *(end - 1) != layout.none()) return false;
  std::copy_backward(place, end - 1, end);
  *place = static_cast<uint16_t>(code);
  return true;
}

template <typename T>
bool convert(LayerTensors& tensors, TapLayout& layout, const std::vector<int64_t>& zeros) {
  const auto* dense = tensors.weight.data<T>();
  const MaskGrid slices = slice_masks(dense, layout.outputs, layout.inputs, layout.positions);
  const MaskGrid united = unite_columns(slices, layout.share_inputs);
  bool fits = true;
  for_each_block(united, layout,
                 [&](int64_t, const Mask& mask) { fits = fits && static_cast<int64_t>(mask.count()) <= layout.taps; });
  if (!fits) return false;
  std::vector<uint16_t> codes = codes_of(layout, united);
  for (size_t i = 0; i + 1 < zeros.size(); i += 2) {
    const bool is_known =
        zeros[i] >= 0 && zeros[i] < layout.sets() && zeros[i + 1] >= 0 && zeros[i + 1] < layout.positions;
    if (!is_known || !insert_code(codes, layout, zeros[i], zeros[i + 1])) return false;
  }
  layout.dropped = dropped_weights(layout, codes);
  layout.may_be_empty = layout.dropped > 0;
  tensors.weight = Tensor::of<T>(gather_weights(layout, codes, dense), {layout.outputs, layout.inputs, layout.taps});
  tensors.positions = std::move(codes);
  return true;
}

}  // namespace

bool gather_taps(LayerTensors& tensors, TapLayout& layout, const std::vector<int64_t>& zeros) {
  if (layout.positions > static_cast<int64_t>(kMostPositions)) return false;
  const bool is_int8 = tensors.weight.dtype() == DType::kI8;
  return is_int8 ? convert<int8_t>(tensors, layout, zeros) : convert<float>(tensors, layout, zeros);
}

std::vector<int64_t> zero_entries(const LayerTensors& tensors, const TapLayout& layout) {
  std::vector<bool> is_zero(static_cast<size_t>(layout.codes()), true);
  for (int64_t i = 0; i < layout.weights(); ++i) {
    const bool is_int8 = tensors.weight.dtype() == DType::kI8;
    const bool zero = is_int8 ? tensors.weight.data<int8_t>()[i] == 0 : tensors.weight.data<float>()[i] == 0;
    if (zero) continue;
    const int64_t slice = i / layout.taps;
    is_zero[static_cast<size_t>(layout.first_code(slice / layout.inputs, slice % layout.inputs) + i % layout.taps)] =
        false;
  }
  std::vector<int64_t> zeros;
  for (int64_t entry = 0; entry < layout.codes(); ++entry) {
    const int64_t code = tensors.positions[static_cast<size_t>(entry)];
    if (!is_zero[static_cast<size_t>(entry)] || code == layout.none()) continue;
    zeros.push_back(entry / layout.taps);
    zeros.push_back(code);
  }
  return zeros;
}

template <typename T>
std::optional<TapLayout> best_tap_layout(const T* weight, int64_t outputs, int64_t inputs, int64_t positions,
                                         const SparseToTapsOptions& options) {
  check(options);
  if (positions < 2 || positions > static_cast<int64_t>(kMostPositions)) return std::nullopt;
  // No layout stores less than what is not zero: dense layers need no search.
  const int64_t all = outputs * inputs * positions;
  const auto most = static_cast<int64_t>(options.max_density * static_cast<double>(all));
  if (all - std::count(weight, weight + all, T{0}) > most) return std::nullopt;
  const MaskGrid slices = slice_masks(weight, outputs, inputs, positions);
  TapLayout layout, best;
  layout.outputs = outputs;
  layout.inputs = inputs;
  layout.positions = positions;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const int64_t share_inputs : block_sizes(inputs)) {
    layout.share_inputs = share_inputs;
    const MaskGrid united = unite_columns(slices, share_inputs);
    for (const int64_t share_outputs : block_sizes(outputs)) {
      layout.share_outputs = share_outputs;
      fit(layout, united);
      const int64_t bits = file_bits(layout, 8 * static_cast<int64_t>(sizeof(T)));
      if (bits > fewest || (bits == fewest && layout.sets() > best.sets())) continue;
      fewest = bits;
      best = layout;
    }
  }
  if (best.kept_weights() > most) return std::nullopt;
  return best;
}

template std::optional<TapLayout> best_tap_layout<float>(const float*, int64_t, int64_t, int64_t,
                                                         const SparseToTapsOptions&);
template std::optional<TapLayout> best_tap_layout<int8_t>(const int8_t*, int64_t, int64_t, int64_t,
                                                          const SparseToTapsOptions&);

std::vector<ConvertedConv> sparse_to_taps(TapNet& net, const SparseToTapsOptions& options) {
  check(options);
  std::vector<ConvertedConv> converted;
  int64_t dropped = 0;
  Graph graph(net.graph.name());
  for (Node node : net.graph.nodes()) {
    const auto layout = tap_layout_of(net, node, options);
    if (layout && dropped + layout->dropped <= kMaxDroppedWeights) {
      dropped += layout->dropped;
      node.op = Op::kTapConv;
      node.method = frozen_taps(*layout);
      converted.push_back({node.name, *layout});
    }
    graph.add(std::move(node));
  }
  graph.set_output(net.graph.output());
  for (ConvertedConv& conv : converted) gather_taps(net.layers.at(conv.name), conv.layout, {});
  net.graph = std::move(graph);
  return converted;
}

}  // namespace onetap
