// What an x86 CPU must have for each of the targets that the kernels are compiled for.
#pragma once

namespace onetap {

struct X86Features {
  bool sse42 = false, pclmul = false, aes = false;
  bool avx2 = false, fma = false, bmi = false, bmi2 = false, f16c = false;
  bool avx512f = false, avx512vl = false, avx512dq = false, avx512bw = false, avx512cd = false;
  bool avx512vnni = false, avxvnni = false;  // dot products of bytes
};

// Exactly what Highway lets the compiler use: a target that is run with less dies of an illegal instruction.
constexpr bool runs_sse4(const X86Features& cpu) {
  return cpu.sse42 && cpu.pclmul && cpu.aes;
}
constexpr bool runs_avx2(const X86Features& cpu) {
  return runs_sse4(cpu) && cpu.avx2 && cpu.fma && cpu.bmi && cpu.bmi2 && cpu.f16c;
}
constexpr bool runs_avx512(const X86Features& cpu) {
  return runs_avx2(cpu) && cpu.avx512f && cpu.avx512vl && cpu.avx512dq && cpu.avx512bw && cpu.avx512cd;
}

#if defined(__x86_64__) || defined(__i386__)
// Of this CPU.
X86Features x86_features();
#endif

}  // namespace onetap
