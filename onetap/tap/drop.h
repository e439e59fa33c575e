// Dropping weights of tap convolutions that no longer matter: their positions become "none", files do not store them,
// kernels skip them.
//
// The unit is an entry of a set (base/tap_layout.h): a position and its weights in all slices of the set's block. Its
// score is the root mean square of its folded weights over the Euclidean norm of all weights of the layer whose entries
// are not smaller: the weight's part in what is left once everything smaller is gone. Scores of all layers can be
// compared (Lee et al., Layer-adaptive Sparsity for the Magnitude-based Pruning, ICLR 2021, have their squares), those
// of a layer are in the order of magnitude, and dropping the lowest does not change the others.
#pragma once

#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

struct DropOptions {
  double below = 0;               // entries whose score is less than this; those that are exactly zero always
  std::optional<double> density;  // in place of `below`: the share of all weights of tap convolutions that stays
};

struct LayerDrop {
  std::string name;
  int64_t weights = 0;  // before any were dropped
  int64_t dropped = 0;  // those that were dropped before included
};

struct DropResult {
  std::vector<LayerDrop> layers;  // the tap convolutions, in order
  int64_t weights = 0, dropped = 0;
  int64_t faint = 0;  // kept weights of entries with a score below kFaint
  double below = 0;   // what `below` would have dropped the same

  static constexpr double kFaint = 1e-4;
  double share() const { return weights > 0 ? static_cast<double>(dropped) / static_cast<double>(weights) : 0; }
};

// Drops from all tap convolutions of the network. With a density, entries go in the order of their scores until the
// next would leave less than that share. Outputs and inputs that have nothing left stay where they are: the former are
// their bias. kUsage for a density that is not in (0, 1] or a negative `below`; kData for weights that are no floats.
DropResult drop_weights(TapNet& net, const DropOptions& options);

}  // namespace onetap
