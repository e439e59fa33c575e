#include "onetap/kernels/x86_features.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

namespace onetap {
namespace {

// Compilers before GCC 11 and Clang 15 do not know "f16c" by name. That the system saves the wide registers is part of
// what they say about AVX2.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// Nor these. Which registers the system saves is again part of what they say about AVX2 and AVX-512.
void find_dot_products(X86Features& cpu) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return;
  cpu.avx512vnni = (ecx & (1u << 11)) != 0;
  const unsigned most = eax;
  if (most < 1 || __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0) return;
  cpu.avxvnni = (eax & (1u << 4)) != 0;
}

}  // namespace

X86Features x86_features() {
  X86Features cpu;
  cpu.sse42 = __builtin_cpu_supports("sse4.2");
  cpu.pclmul = __builtin_cpu_supports("pclmul");
  cpu.aes = __builtin_cpu_supports("aes");
  cpu.avx2 = __builtin_cpu_supports("avx2");
  cpu.fma = __builtin_cpu_supports("fma");
  cpu.bmi = __builtin_cpu_supports("bmi");
  cpu.bmi2 = __builtin_cpu_supports("bmi2");
  cpu.f16c = has_f16c();
  cpu.avx512f = __builtin_cpu_supports("avx512f");
  cpu.avx512vl = __builtin_cpu_supports("avx512vl");
  cpu.avx512dq = __builtin_cpu_supports("avx512dq");
  cpu.avx512bw = __builtin_cpu_supports("avx512bw");
  cpu.avx512cd = __builtin_cpu_supports("avx512cd");
  find_dot_products(cpu);
  return cpu;
}

}  // namespace onetap

#endif
