// The int8 kernels on the vectors of each target. Intrinsics alone: Highway's headers of Debian 12 have neither dot
// products nor saturating packs.
#include "onetap/kernels/int8_targets.h"
#include "onetap/kernels/x86_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

#if defined(__clang__)
#define INT8_BEGIN_TARGET(name) \
  _Pragma(INT8_TEXT(clang attribute push(__attribute__((target(name))), apply_to = function)))
#define INT8_END_TARGET _Pragma("clang attribute pop")
#else
#define INT8_BEGIN_TARGET(name) _Pragma("GCC push_options") _Pragma(INT8_TEXT(GCC target(name)))
#define INT8_END_TARGET _Pragma("GCC pop_options")
#endif
#define INT8_TEXT(x) #x

#if defined(__x86_64__)

#define INT8_IN_REGISTER(v) "+v"(v)

INT8_BEGIN_TARGET("avx512f,avx512vl,avx512dq,avx512bw,avx512cd,avx512vnni")
#define INT8_DOT 1
#define INT8_TWO_ROWS
namespace onetap::int8_avx512vnni {
namespace {
#include "onetap/kernels/int8_avx512-inl.h"
constexpr int kWeightWords = 1;
#include "onetap/kernels/int8_kernels-inl.h"
}  // namespace
}  // namespace onetap::int8_avx512vnni
#undef INT8_DOT
#undef INT8_TWO_ROWS
INT8_END_TARGET

// With 512 bits and dot products, the four times larger memory of expanded inputs costs more than the zeros of quads.
#define INT8_PAIRS

INT8_BEGIN_TARGET("avx512f,avx512vl,avx512dq,avx512bw,avx512cd")
#define INT8_DOT 0
namespace onetap::int8_avx512 {
namespace {
#include "onetap/kernels/int8_avx512-inl.h"
constexpr int kWeightWords = 2;
#include "onetap/kernels/int8_kernels-inl.h"
}  // namespace
}  // namespace onetap::int8_avx512
#undef INT8_DOT
INT8_END_TARGET

#undef INT8_IN_REGISTER
#define INT8_IN_REGISTER(v) "+x"(v)

// Compilers that know AVX-VNNI.
#if (defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11)
#define INT8_HAVE_AVXVNNI
INT8_BEGIN_TARGET("avx2,avxvnni")
#define INT8_DOT 1
namespace onetap::int8_avxvnni {
namespace {
#include "onetap/kernels/int8_avx2-inl.h"
constexpr int kWeightWords = 1;
#include "onetap/kernels/int8_kernels-inl.h"
}  // namespace
}  // namespace onetap::int8_avxvnni
#undef INT8_DOT
INT8_END_TARGET
#endif

INT8_BEGIN_TARGET("avx2")
#define INT8_DOT 0
namespace onetap::int8_avx2 {
namespace {
#include "onetap/kernels/int8_avx2-inl.h"
constexpr int kWeightWords = 2;
#include "onetap/kernels/int8_kernels-inl.h"
}  // namespace
}  // namespace onetap::int8_avx2
#undef INT8_DOT
INT8_END_TARGET

INT8_BEGIN_TARGET("sse4.1")
namespace onetap::int8_sse4 {
namespace {
#include "onetap/kernels/int8_sse4-inl.h"
constexpr int kWeightWords = 2;
#include "onetap/kernels/int8_kernels-inl.h"
}  // namespace
}  // namespace onetap::int8_sse4
INT8_END_TARGET

#elif defined(__aarch64__)

#define INT8_IN_REGISTER(v) "+w"(v)

#if defined(__clang__)
INT8_BEGIN_TARGET("dotprod")
#else
INT8_BEGIN_TARGET("arch=armv8.2-a+dotprod")
#endif
#define INT8_DOT 1
namespace onetap::int8_neondot {
namespace {
#include "onetap/kernels/int8_neon-inl.h"
constexpr int kWeightWords = 1;
#include "onetap/kernels/int8_kernels-inl.h"
}  // namespace
}  // namespace onetap::int8_neondot
#undef INT8_DOT
INT8_END_TARGET

#define INT8_DOT 0
namespace onetap::int8_neon {
namespace {
#include "onetap/kernels/int8_neon-inl.h"
constexpr int kWeightWords = 1;
#include "onetap/kernels/int8_kernels-inl.h"
}  // namespace
}  // namespace onetap::int8_neon
#undef INT8_DOT

#endif

namespace onetap {
namespace {

#if defined(__aarch64__)
bool has_dot_products() {
#if defined(__linux__)
  constexpr unsigned long kDotProducts = 1ul << 20;  // HWCAP_ASIMDDP
  return (::getauxval(AT_HWCAP) & kDotProducts) != 0;
#else
  return true;  // Apple's
#endif
}
#endif

}  // namespace

std::vector<const KernelSet*> simd_int8_kernels() {
  std::vector<const KernelSet*> rows;
#if defined(__x86_64__)
  const X86Features cpu = x86_features();
  static const KernelSet avx512vnni = int8_kernel_set("avx512vnni", int8_avx512vnni::int8_kernels());
  static const KernelSet avx512 = int8_kernel_set("avx512", int8_avx512::int8_kernels());
  static const KernelSet avx2 = int8_kernel_set("avx2", int8_avx2::int8_kernels());
  static const KernelSet sse4 = int8_kernel_set("sse4", int8_sse4::int8_kernels());
  if (runs_avx512(cpu) && cpu.avx512vnni) rows.push_back(&avx512vnni);
#if defined(INT8_HAVE_AVXVNNI)
  static const KernelSet avxvnni = int8_kernel_set("avxvnni", int8_avxvnni::int8_kernels());
  if (runs_avx2(cpu) && cpu.avxvnni) rows.push_back(&avxvnni);
#endif
  if (runs_avx512(cpu)) rows.push_back(&avx512);
  if (runs_avx2(cpu)) rows.push_back(&avx2);
  if (runs_sse4(cpu)) rows.push_back(&sse4);
#elif defined(__aarch64__)
  static const KernelSet dot = int8_kernel_set("neondot", int8_neondot::int8_kernels());
  static const KernelSet neon = int8_kernel_set("neon", int8_neon::int8_kernels());
  if (has_dot_products()) rows.push_back(&dot);
  rows.push_back(&neon);
#endif
  return rows;
}

}  // namespace onetap
