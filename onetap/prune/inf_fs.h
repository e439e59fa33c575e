// Infinite Feature Selection (Roffo et al.): how much each feature is worth among all the others.
#pragma once

#include "onetap/nn/torch.h"

namespace onetap {

// Of [samples, features]: the correlation of ranks of every two features, [features, features]. Equal values share the
// mean of their ranks; a feature that is constant correlates with nothing, itself included.
torch::Tensor rank_correlation(const torch::Tensor& features);

// One score for each feature, all of them at least 0. Features i and j are linked by
//   A_ij = alpha * max(sd_i, sd_j) + (1 - alpha) * (1 - |rank correlation|),
// with standard deviations in parts of the largest one. A score sums up all paths from a feature through others, of any
// length: the rows of (I - r A)^-1 - I, where r is 0.9 over the spectral radius of A. A constant feature tells nothing:
// it has no second term.
torch::Tensor inf_fs(const torch::Tensor& features, double alpha = 0.5);

}  // namespace onetap
