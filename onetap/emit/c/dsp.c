#if defined(DSP) && !defined(VECTORS)
/* Two bytes of a word as 16-bit numbers: 0 and 2, or 1 and 3. */
#define EXTEND(name, instruction)                  \
  INLINE uint32_t name(uint32_t word) {            \
    uint32_t pair;                                 \
    __asm__(instruction : "=r"(pair) : "r"(word)); \
    return pair;                                   \
  }
EXTEND(even_signed, "sxtb16 %0, %1")
EXTEND(odd_signed, "sxtb16 %0, %1, ror #8")
EXTEND(even_unsigned, "uxtb16 %0, %1")
EXTEND(odd_unsigned, "uxtb16 %0, %1, ror #8")

/* sum + both products of 16-bit numbers. */
INLINE int32_t add_products(int32_t sum, uint32_t a, uint32_t b) {
  __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}

INLINE uint32_t word_at(const void* bytes) {
  uint32_t word;
  __builtin_memcpy(&word, __builtin_assume_aligned(bytes, 4), sizeof word);
  return word;
}
#endif
