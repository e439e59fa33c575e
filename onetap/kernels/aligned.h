// Memory that begins on a cache line, which is also the widest vector.
#pragma once

#include "onetap/base/align.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace onetap {

constexpr size_t kLineBytes = 64;
constexpr int64_t kLineFloats = kLineBytes / sizeof(float);

// Rounded down, where / rounds towards zero; floor_mod is what is left, 0 to divisor - 1.
constexpr int64_t floor_div(int64_t value, int64_t divisor) {
  return value >= 0 ? value / divisor : -((-value + divisor - 1) / divisor);
}
constexpr int64_t floor_mod(int64_t value, int64_t divisor) {
  return value - floor_div(value, divisor) * divisor;
}

struct AlignedDelete {
  void operator()(void* memory) const { std::free(memory); }
};

template <typename T>
using AlignedArray = std::unique_ptr<T[], AlignedDelete>;

// Uninitialised; at least one line. From half a huge page on it lies on huge pages where the system has them: a network
// walks through so many small ones that looking them up would cost some percent of its time.
template <typename T>
AlignedArray<T> aligned_array(int64_t count) {
  constexpr int64_t kHugePage = 2 << 20;
  const int64_t bytes = count > 0 ? count * static_cast<int64_t>(sizeof(T)) : 1;
  const bool huge = bytes >= kHugePage / 2;
  const int64_t alignment = huge ? kHugePage : static_cast<int64_t>(kLineBytes);
  const int64_t size = round_up(bytes, alignment);
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(size));
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (huge) ::madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);
#endif
  return AlignedArray<T>(static_cast<T*>(memory));
}

}  // namespace onetap
