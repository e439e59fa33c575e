// What a trained network becomes: batch norms go into the convolutions before them, shifts into the 1x1 convolutions
// behind them, convolutions become what their method says, such as tap convolutions. Of the graph alone; the
// numbers of a folded batch norm are in fold_norm.h.
#pragma once

#include "onetap/graph/graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace onetap {

struct FrozenForm {
  Graph graph;
  std::map<std::string, std::string> folded;  // conv that took in a batch norm, and the batch norm's name
  // Conv that took in a shift: the positions of the tapconv that it is now, one of each input for all outputs. Its
  // weights are those of the 1x1 convolution, as [out, in, 1].
  std::map<std::string, std::vector<uint16_t>> shifted;
};

// A batch norm is folded where it alone reads a convolution's result; elsewhere (before a convolution, after a sum) it
// stays, as `affine`. A shift is folded where a dense 1x1 convolution of one group alone reads its result; elsewhere it
// stays. A frozen network comes back as it is, unless someone wrote it with a shift that folds.
FrozenForm frozen_form(const Graph& trained);

}  // namespace onetap
