#ifndef VECTORS
#if defined(DSP) && CODE_BITS == 4 && !HAS_EMPTY
/* The words of one set, two of a byte of codes at a time, and the last of an odd number. Compilers need a quarter more
   instructions. */
#define LIST_TWO(extend) \
  "ldrb %[pair], [%[codes]], #1\n\tand %[even0], %[pair], #15\n\t" LIST_WORDS(extend)                 \
  "adds %[base], %[base], #4\n\tlsrs %[even0], %[pair], #4\n\t" LIST_WORDS(extend) "adds %[base], %[base], #4\n\t"

#define LIST_QUADS(name, extend, put)                                                                                 \
  INLINE Words* name(Words* list, const Taps* taps, const uint8_t* codes, const uint8_t* base, const uint8_t* last) { \
    uint32_t pair;                                                                                                    \
    LIST_REGISTERS(0);                                                                                                \
    __asm__ volatile(                                                                                                 \
        "cmp %[base], %[last]\n\tbhs 2f\n\t"                                                                          \
        "1:\n\t" LIST_TWO(extend) "cmp %[base], %[last]\n\tblo 1b\n\t2:"                                              \
        : [list] "+r"(list), [codes] "+r"(codes), [base] "+r"(base), [pair] "=&r"(pair), [even0] "+r"(even0),         \
          [odd0] "=&r"(odd0), [even1] "=&r"(even1), [odd1] "=&r"(odd1)                                                \
        : [place] "r"(taps->place), [last] "r"(last)                                                                  \
        : "cc", "memory");                                                                                            \
    return base < last + 4 ? put(list, base, taps, *codes & 15) : list;                                               \
  }
LIST_QUADS(quads_unsigned, "uxtb16", put_unsigned)
LIST_QUADS(quads_signed, "sxtb16", put_signed)
#else
/* The words of one set. */
INLINE Words* list_set(Words* list, const Conv* conv, const Taps* taps, const uint8_t* codes, const uint8_t* base,
                       const uint8_t* end, int32_t is_signed) {
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  for (; base < end; base += 4) {
    int32_t position = *codes++;
    if (CODE_BITS == 4) {
      const int32_t first = position & 15;
      if (!HAS_EMPTY || first < positions) list = put_words(list, base, taps, first, is_signed);
      base += 4;
      if (base >= end) break;
      position >>= 4;
    }
    if (!HAS_EMPTY || position < positions) list = put_words(list, base, taps, position, is_signed);
  }
  return list;
}
#endif

/* One word to a block and one tap: the usual case. */
INLINE Words* list_quads(Words* list, const Conv* conv, const Taps* taps, const uint8_t* base, const uint8_t* codes,
                         const uint8_t* codes_end, int32_t is_signed) {
  const uint8_t* end = base + conv->inputs;
  for (; codes < codes_end; codes += conv->code_bytes) {
#if defined(DSP) && CODE_BITS == 4 && !HAS_EMPTY
    list =
        is_signed ? quads_signed(list, taps, codes, base, end - 4) : quads_unsigned(list, taps, codes, base, end - 4);
#else
    list = list_set(list, conv, taps, codes, base, end, is_signed);
#endif
  }
  return list;
}
#endif
