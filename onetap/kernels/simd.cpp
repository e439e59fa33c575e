// The kernels on Highway's vectors, once per target. Highway's headers alone: which of the targets this CPU runs is
// asked of the compiler's runtime, so that a static binary needs no further library. SSSE3, the successors of AVX-512
// (bits 0-7) and SVE (23-27): not worth their compile time, or without fixed vectors.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | 0xFFLL | (0x1FLL << 23))
#ifndef HWY_IS_DEBUG_BUILD
#define HWY_IS_DEBUG_BUILD 0  // its assertions would need Highway's library
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onetap/kernels/simd.cpp"
#include "onetap/kernels/targets.h"
#include "onetap/kernels/x86_features.h"

#include <algorithm>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <limits>
#include <type_traits>
#include <utility>

#ifndef KERNELS_ATTR
#define KERNELS_ATTR HWY_ATTR
#define ONETAP_RESTRICT HWY_RESTRICT
#endif

// A build for the oldest CPUs has a target without vectors, which plain.cpp does better.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace onetap {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

constexpr int64_t kLanes = HWY_LANES(float);
constexpr int kRegisters = HWY_ARCH_ARM || HWY_TARGET == HWY_AVX3 ? 32 : 16;
constexpr const char* kTargetName = HWY_TARGET == HWY_AVX3   ? "avx512"
                                    : HWY_TARGET == HWY_AVX2 ? "avx2"
                                    : HWY_TARGET == HWY_SSE4 ? "sse4"
                                    : HWY_TARGET == HWY_NEON ? "neon"
                                                             : "sse2";

namespace ops {

using V = hn::Vec<D>;

HWY_INLINE HWY_ATTR V load(const float* from) {
  return hn::Load(D(), from);
}
HWY_INLINE HWY_ATTR V load_unaligned(const float* from) {
  return hn::LoadU(D(), from);
}
HWY_INLINE HWY_ATTR void store(V v, float* to) {
  hn::Store(v, D(), to);
}
HWY_INLINE HWY_ATTR void store_unaligned(V v, float* to) {
  hn::StoreU(v, D(), to);
}
HWY_INLINE HWY_ATTR V broadcast(float value) {
  return hn::Set(D(), value);
}
HWY_INLINE HWY_ATTR void store_halves(V v, float* low, float* high) {
  const hn::Half<D> half;
  hn::StoreU(hn::LowerHalf(half, v), half, low);
  hn::StoreU(hn::UpperHalf(half, v), half, high);
}
HWY_INLINE HWY_ATTR V zero() {
  return hn::Zero(D());
}
HWY_INLINE HWY_ATTR V mul_add(V a, V b, V c) {
  return hn::MulAdd(a, b, c);
}
HWY_INLINE HWY_ATTR V add(V a, V b) {
  return hn::Add(a, b);
}
// A NaN comes through. x86's maximum is its second operand where either is NaN; Highway's on ARM is the number.
HWY_INLINE HWY_ATTR V at_least(V floor, V v) {
#if HWY_ARCH_X86
  return hn::Max(floor, v);
#else
  return hn::IfThenElse(hn::Lt(v, floor), floor, v);
#endif
}
HWY_INLINE HWY_ATTR V bit_and(V a, V b) {
  return hn::And(a, b);
}
HWY_INLINE HWY_ATTR void load_pairs(const float* from, V& even, V& odd) {
  hn::LoadInterleaved2(D(), from, even, odd);
}
HWY_INLINE HWY_ATTR float sum(V v) {
  return hn::GetLane(hn::SumOfLanes(D(), v));
}

}  // namespace ops

#include "onetap/kernels/kernels-inl.h"

}  // namespace

std::vector<const KernelSet*> target_kernels() {
  return {&float_kernels()};
}

}  // namespace HWY_NAMESPACE
}  // namespace onetap
HWY_AFTER_NAMESPACE();

#endif

#if HWY_ONCE
namespace onetap {

std::vector<const KernelSet*> simd_kernels() {
  std::vector<const KernelSet*> rows;
  [[maybe_unused]] const auto add = [&](bool runs, std::vector<const KernelSet*> (*of_target)()) {
    if (!runs) return;
    for (const KernelSet* row : of_target()) rows.push_back(row);
  };
#if HWY_ARCH_X86
  const X86Features cpu = x86_features();
#endif
#if HWY_TARGETS & HWY_AVX3
  add(runs_avx512(cpu), &N_AVX3::target_kernels);
#endif
#if HWY_TARGETS & HWY_AVX2
  add(runs_avx2(cpu), &N_AVX2::target_kernels);
#endif
#if HWY_TARGETS & HWY_SSE4
  add(runs_sse4(cpu), &N_SSE4::target_kernels);
#endif
#if defined(HWY_SSE2) && (HWY_TARGETS & HWY_SSE2)
  add(true, &N_SSE2::target_kernels);
#endif
#if HWY_TARGETS & HWY_NEON
  add(true, &N_NEON::target_kernels);
#endif
  return rows;
}

}  // namespace onetap
#endif
