// What a trained network becomes: batch norms go into the convolutions before them, convolutions become what their
// method says, such as tap convolutions. Of the graph alone; onetap/freeze brings the tensors.
#pragma once

#include "onetap/graph/graph.h"

#include <map>
#include <string>

namespace onetap {

struct FrozenForm {
  Graph graph;
  std::map<std::string, std::string> folded;  // conv that took in a batch norm, and the batch norm's name
};

// A batch norm is folded where it alone reads a convolution's result; elsewhere (before a convolution, after a sum) it
// stays, as `affine`. A frozen network comes back as it is.
FrozenForm frozen_form(const Graph& trained);

}  // namespace onetap
