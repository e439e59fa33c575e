// Where the rows of the table of kernels come from; kernel_set.cpp puts them in order.
#pragma once

#include "onetap/kernels/kernel_set.h"

namespace onetap {

std::vector<const KernelSet*> plain_kernels();

// Those of Highway's targets that this CPU runs, best first; none in a build without Highway.
std::vector<const KernelSet*> simd_kernels();

// Rows of type I8.
KernelSet int8_kernel_set(const char* target, const Int8Kernels& kernels);
const KernelSet& plain_int8_kernels();
std::vector<const KernelSet*> simd_int8_kernels();

}  // namespace onetap
