// Convolutions whose kernels are mostly zeros, as another program trained or masked them, become tap convolutions:
// files store the weights that are left and kernels visit those alone. The network computes the same.
#pragma once

#include "onetap/base/tap_layout.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

struct SparseToTapsOptions {
  // A layer is converted if the weights that its tap convolution stores are at most this share of all its weights.
  double max_density = 0.5;
  std::vector<std::string> layers = {};  // those alone; empty: all
};

struct ConvertedConv {
  std::string name;
  TapLayout layout;  // taps, blocks and dropped weights of the tap convolution
};

// The layout that takes the fewest bits in a file for weights [outputs, inputs, positions] that are not zero: over
// blocks of up to 64 outputs and inputs, and of all of them. Sets have as many taps as the fullest block has positions
// that are not zero; smaller sets have empty entries (`dropped`). Equal costs go to the larger blocks. Nothing for
// kernels of one position or of more than 256, and where the layout stores more than max_density.
template <typename T>  // float or int8_t
std::optional<TapLayout> best_tap_layout(const T* weight, int64_t outputs, int64_t inputs, int64_t positions,
                                         const SparseToTapsOptions& options = {});

// Converts every dense convolution, of floats or of bytes, that has such a layout; the result names them in the order
// of the network. A layer that would bring the dropped weights above what a file may have (kMaxDroppedWeights) stays
// dense. kUsage for a density that is not in (0, 1].
std::vector<ConvertedConv> sparse_to_taps(TapNet& net, const SparseToTapsOptions& options = {});

// The weights of a layer [outputs, inputs, kernel rows, kernel columns] as those of a tap convolution with the taps and
// blocks of `layout`, whose `dropped` is set: positions that are 0 in a whole block are left out, but for those of
// `zeros` (a set and a position, then the next). False, and nothing changed, if the weights have no such form.
bool gather_taps(LayerTensors& tensors, TapLayout& layout, const std::vector<int64_t>& zeros);
// These, of a tap convolution: positions that are kept though all of their weights are 0.
std::vector<int64_t> zero_entries(const LayerTensors& tensors, const TapLayout& layout);

}  // namespace onetap
