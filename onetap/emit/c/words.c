#ifndef VECTORS
/* Sums of two outputs a and b of two pixels: as many as a Cortex-M has registers for. */
typedef struct {
  int32_t a0, a1, b0, b1;
} Sums;

/* Words are four inputs of two pixels. Those of a layer with few of them are listed once for all outputs that read
   them. */
#ifdef DSP
/* As 16-bit numbers. */
typedef struct {
  uint32_t even0, odd0, even1, odd1;
} Words;

INLINE Words words_at(const uint8_t* x0, const uint8_t* x1, int32_t is_signed) {
  const uint32_t word0 = word_at(x0), word1 = word_at(x1);
  Words words;
  words.even0 = is_signed ? even_signed(word0) : even_unsigned(word0);
  words.odd0 = is_signed ? odd_signed(word0) : odd_unsigned(word0);
  words.even1 = is_signed ? even_signed(word1) : even_unsigned(word1);
  words.odd1 = is_signed ? odd_signed(word1) : odd_unsigned(word1);
  return words;
}

/* Lists the words at the position that even0 is. Registers in order are stored at once. */
#define LIST_WORDS(extend)                                                                                             \
  "add %[even0], %[place], %[even0], lsl #3\n\t"                                                                       \
  "ldrd %[even0], %[even1], [%[even0]]\n\t"                                                                            \
  "ldr %[odd0], [%[base], %[even0]]\n\t"                                                                               \
  "ldr %[odd1], [%[base], %[even1]]\n\t" extend " %[even0], %[odd0]\n\t" extend " %[odd0], %[odd0], ror #8\n\t" extend \
  " %[even1], %[odd1]\n\t" extend                                                                                      \
  " %[odd1], %[odd1], ror #8\n\t"                                                                                      \
  "stm %[list]!, {%[even0], %[odd0], %[even1], %[odd1]}\n\t"
#define LIST_REGISTERS(first) \
  register uint32_t even0 __asm__("r4") = first, odd0 __asm__("r5"), even1 __asm__("r6"), odd1 __asm__("r8")

#define PUT_WORDS(name, extend)                                                                                \
  INLINE Words* name(Words* list, const uint8_t* base, const Taps* taps, int32_t position) {                   \
    LIST_REGISTERS((uint32_t)position);                                                                        \
    __asm__ volatile(                                                                                          \
        LIST_WORDS(extend)                                                                                     \
        : [list] "+r"(list), [even0] "+r"(even0), [odd0] "=&r"(odd0), [even1] "=&r"(even1), [odd1] "=&r"(odd1) \
        : [base] "r"(base), [place] "r"(taps->place)                                                           \
        : "memory");                                                                                           \
    return list;                                                                                               \
  }
PUT_WORDS(put_unsigned, "uxtb16")
PUT_WORDS(put_signed, "sxtb16")

INLINE Words* put_words(Words* list, const uint8_t* base, const Taps* taps, int32_t position, int32_t is_signed) {
  return is_signed ? put_signed(list, base, taps, position) : put_unsigned(list, base, taps, position);
}

INLINE void add_output(int32_t* sum0, int32_t* sum1, uint32_t weights, Words words) {
  const uint32_t even = even_signed(weights), odd = odd_signed(weights);
  *sum0 = add_products(add_products(*sum0, even, words.even0), odd, words.odd0);
  *sum1 = add_products(add_products(*sum1, even, words.even1), odd, words.odd1);
}

/* Adds the products of four inputs and four weights of each output. */
INLINE void add_words(Sums* sums, const int8_t* w, Words words, int32_t is_signed) {
  (void)is_signed;
  add_output(&sums->a0, &sums->a1, word_at(w), words);
  add_output(&sums->b0, &sums->b1, word_at(w + 4), words);
}
#else
typedef struct {
  const uint8_t *x0, *x1;
} Words;

INLINE Words words_at(const uint8_t* x0, const uint8_t* x1, int32_t is_signed) {
  Words words;
  (void)is_signed;
  words.x0 = x0;
  words.x1 = x1;
  return words;
}

INLINE Words* put_words(Words* list, const uint8_t* base, const Taps* taps, int32_t position, int32_t is_signed) {
  *list = words_at(base + taps->place[position][0], base + taps->place[position][1], is_signed);
  return list + 1;
}

/* Adds the products of four inputs and four weights of each output. */
INLINE void add_words(Sums* sums, const int8_t* w, Words words, int32_t is_signed) {
  for (int32_t i = 0; i < 4; ++i) {
    const int32_t value0 = byte_value(words.x0[i], is_signed), value1 = byte_value(words.x1[i], is_signed);
    sums->a0 += w[i] * value0;
    sums->a1 += w[i] * value1;
    sums->b0 += w[4 + i] * value0;
    sums->b1 += w[4 + i] * value1;
  }
}
#endif

INLINE int32_t* put_sums(int32_t* results, Sums sums) {
  results[0] = sums.a0;
  results[1] = sums.a1;
  results[2] = sums.b0;
  results[3] = sums.b1;
  return results + 4;
}
#endif
