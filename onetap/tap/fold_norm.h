// The numbers of a batch norm that is folded: in double precision, rounded once. Where it is folded, fold.h says.
#pragma once

#include "onetap/tap/tap_net.h"

#include <vector>

namespace onetap {

// Of F32, one value per channel.
struct NormTensors {
  Tensor weight, bias, running_mean, running_var;
  double epsilon = 0;
};

// Per channel: what a batch norm in evaluation multiplies by, and what it adds.
struct ScaleShift {
  explicit ScaleShift(const NormTensors& norm);

  std::vector<double> scale, shift;
};

// What becomes of a batch norm that stays: the tensors of an affine layer.
LayerTensors affine_layer(const ScaleShift& norm);

// Takes the batch norm behind a layer into its weight [outputs, ...] and its bias, which may be empty before.
void fold_norm(const ScaleShift& norm, LayerTensors& layer);

}  // namespace onetap
