// Dropping weights of tap convolutions that no longer matter: their positions become "none", files do not store them,
// kernels skip them.
//
// The unit is an entry of a set (base/tap_layout.h): a position and its weights in all slices of the set's block. Its
// score is the root mean square, over those weights, of |w[d, c, t]| / norm(d), where norm(d) is the Euclidean norm of
// output d's folded weights in the layer: the part that the entry has in its outputs if all inputs are of one size.
// Scores do not depend on batch norm's scales, so entries of all layers can be compared.
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

  static constexpr double kFaint = 1e-3;
  double share() const { return weights > 0 ? static_cast<double>(dropped) / static_cast<double>(weights) : 0; }
};

// Drops from all tap convolutions of the network. With a density, entries go in the order of their scores until the next
// would leave less than that share. Outputs and inputs that have nothing left stay where they are: the former are
// their bias. kUsage for a density that is not in (0, 1] or a negative `below`; kData for weights that are no floats.
DropResult drop_weights(TapNet& net, const DropOptions& options);

}  // namespace onetap
