// The constants of every batch norm, for training, freezing and kernels alike; no header of LibTorch or CUDA is needed.
#pragma once

namespace onetap {

// Added to the variance before the square root.
constexpr double kBatchNormEpsilon = 1e-5;
// The share of the newest batch in the running statistics.
constexpr double kBatchNormMomentum = 0.1;
// The variance of a batch norm that stands for factors and biases of channels alone, as `import` makes them: with
// epsilon it is 1. Training replaces it by that of the values.
constexpr float kPlainNormVariance = static_cast<float>(1 - kBatchNormEpsilon);

}  // namespace onetap
