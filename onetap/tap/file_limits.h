// What a .tap file may claim that it has no bytes for.
#pragma once

#include <cstdint>

namespace onetap {

constexpr int64_t kMaxBitWeights = int64_t{1} << 28;      // of one bit, in a file: 1 GiB in memory
constexpr int64_t kMaxDroppedWeights = int64_t{1} << 25;  // that take no place in a file: 128 MiB in memory as floats

}  // namespace onetap
