// Memory that begins on a cache line, which is also the widest vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace onetap {

constexpr size_t kLineBytes = 64;
constexpr int64_t kLineFloats = kLineBytes / sizeof(float);

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

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

// Uninitialised; at least one line.
template <typename T>
AlignedArray<T> aligned_array(int64_t count) {
  const int64_t bytes = round_up(count > 0 ? count * static_cast<int64_t>(sizeof(T)) : 1, kLineBytes);
  void* memory = std::aligned_alloc(kLineBytes, static_cast<size_t>(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedArray<T>(static_cast<T*>(memory));
}

}  // namespace onetap
