// Numbers that the attention of LibTorch's ops and of our CUDA kernels have in common. Plain C++: nvcc reads it too.
#pragma once

namespace onetap::nn {

// exp(-60) = 9e-27 vanishes beside 1 in float. Without this bound, P of the losing positions runs through the denormal
// numbers as T falls, and a CPU convolves those several times slower.
constexpr float kDeepestExponent = -60.0f;

}  // namespace onetap::nn
