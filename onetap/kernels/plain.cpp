// The kernels on the compiler's own vectors: for CPUs, and builds, without anything better.
#include "onetap/kernels/targets.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#define KERNELS_ATTR
#define ONETAP_RESTRICT __restrict__

namespace onetap::plain {
namespace {

constexpr int64_t kLanes = 4;
constexpr int kRegisters = 16;
constexpr const char* kTargetName = "plain";

namespace ops {

using V = float __attribute__((vector_size(16)));
using Bits = int32_t __attribute__((vector_size(16)));

inline V load_unaligned(const float* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline V load(const float* from) {
  return *reinterpret_cast<const V*>(from);
}
inline void store_unaligned(V v, float* to) {
  std::memcpy(to, &v, sizeof v);
}
inline void store(V v, float* to) {
  *reinterpret_cast<V*>(to) = v;
}
inline V broadcast(float value) {
  return V{value, value, value, value};
}
inline void store_halves(V v, float* low, float* high) {
  low[0] = v[0];
  low[1] = v[1];
  high[0] = v[2];
  high[1] = v[3];
}
inline V zero() {
  return V{};
}
inline V mul_add(V a, V b, V c) {
  return a * b + c;
}
inline V add(V a, V b) {
  return a + b;
}
inline V at_least(V floor, V v) {
  return v < floor ? floor : v;
}
inline V bit_and(V a, V b) {
  return reinterpret_cast<V>(reinterpret_cast<Bits>(a) & reinterpret_cast<Bits>(b));
}
inline void load_pairs(const float* from, V& even, V& odd) {
  even = V{from[0], from[2], from[4], from[6]};
  odd = V{from[1], from[3], from[5], from[7]};
}
inline float sum(V v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

}  // namespace ops

#include "onetap/kernels/kernels-inl.h"

}  // namespace
}  // namespace onetap::plain

namespace onetap {

std::vector<const KernelSet*> plain_kernels() {
  return {&plain::float_kernels()};
}

}  // namespace onetap
