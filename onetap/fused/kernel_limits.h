// What the CUDA kernels for weights can do, for those who choose between them and autograd. Plain C++: nvcc reads it
// too.
#pragma once

namespace onetap::fused {

// Inputs that may have one set of positions in common: a block of threads has all of a set's inputs.
constexpr int kMostSharedInputs = 96;

}  // namespace onetap::fused
