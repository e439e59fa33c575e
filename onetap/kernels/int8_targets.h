// For the sources that compile int8_kernels-inl.h once per target.
#pragma once

#include "onetap/kernels/int8_kernels.h"
#include "onetap/kernels/targets.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#define INT8_INLINE inline __attribute__((always_inline))
#define INT8_LAMBDA __attribute__((always_inline))
