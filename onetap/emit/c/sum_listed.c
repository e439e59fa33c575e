#ifndef VECTORS
#ifdef DSP
/* One word of two pixels and two outputs, with weights as PAIR stores them: 16 bits are a weight of a + 256 times one
   of b, whose products are those of both, and the lower byte is a's weight alone. */
#define ADD_WORDS                                             \
  "ldm %[words]!, {%[even0], %[odd0], %[even1], %[odd1]}\n\t" \
  "ldrd %[even], %[odd], [%[w]], #8\n\t"                      \
  "smlad %[both0], %[even], %[even0], %[both0]\n\t"           \
  "smlad %[both1], %[even], %[even1], %[both1]\n\t"           \
  "sxtb16 %[even], %[even]\n\t"                               \
  "smlad %[both0], %[odd], %[odd0], %[both0]\n\t"             \
  "smlad %[both1], %[odd], %[odd1], %[both1]\n\t"             \
  "sxtb16 %[odd], %[odd]\n\t"                                 \
  "smlad %[a0], %[even], %[even0], %[a0]\n\t"                 \
  "smlad %[a1], %[even], %[even1], %[a1]\n\t"                 \
  "smlad %[a0], %[odd], %[odd0], %[a0]\n\t"                   \
  "smlad %[a1], %[odd], %[odd1], %[a1]\n\t"

/* Sums of outputs d to end - 1 over listed words: those of the first set, up to list_end, and of others behind it. At
   most 64 words, so that 256 times b has 32 bits. Returns the weights behind. The loop takes all registers; compilers
   would read ahead. */
APART const int8_t* sum_listed(int32_t* results, const int8_t* w, const Words* list, const Words* list_end,
                               const Conv* conv, int32_t d, int32_t end, int32_t is_signed) {
  const int32_t share = conv->share_outputs, words_of_set = (int32_t)(list_end - list);
  const int32_t *results_end = results + 2 * (end - d), *set_end = share < end - d ? results + 2 * share : results_end;
  (void)is_signed;
  for (;;) {
    const Words* words = list;
    int32_t a0 = 0, a1 = 0, both0 = 0, both1 = 0;
#ifdef __OPTIMIZE__
    register uint32_t even0 __asm__("r2"), odd0 __asm__("r3"), even1 __asm__("r4"),
        odd1 __asm__("r5"); /* as LDM needs */
    uint32_t even, odd;
    if (!HAS_EMPTY || words < list_end) {
      __asm__(
          "subs %[even], %[list_end], %[words]\n\t"
          "lsls %[even], %[even], #27\n\t" /* an odd number of 16 bytes: begins in the middle */
          "bmi 2f\n\t"
          "1:\n\t" ADD_WORDS "2:\n\t" ADD_WORDS
          "cmp %[words], %[list_end]\n\t"
          "bne 1b\n\t"
          "subs %[both0], %[both0], %[a0]\n\t"
          "subs %[both1], %[both1], %[a1]"
          : [a0] "+r"(a0), [a1] "+r"(a1), [both0] "+r"(both0), [both1] "+r"(both1), [w] "+r"(w), [words] "+r"(words),
            [even] "=&r"(even), [odd] "=&r"(odd), [even0] "=&r"(even0), [odd0] "=&r"(odd0), [even1] "=&r"(even1),
            [odd1] "=&r"(odd1)
          : [list_end] "r"(list_end)
          : "cc", "memory");
    }
#else /* not enough registers */
    for (; words < list_end; ++words, w += 8) {
      const uint32_t even = word_at(w), odd = word_at(w + 4);
      both0 = add_products(add_products(both0, even, words->even0), odd, words->odd0);
      both1 = add_products(add_products(both1, even, words->even1), odd, words->odd1);
      a0 = add_products(add_products(a0, even_signed(even), words->even0), even_signed(odd), words->odd0);
      a1 = add_products(add_products(a1, even_signed(even), words->even1), even_signed(odd), words->odd1);
    }
    both0 = (int32_t)((uint32_t)both0 - (uint32_t)a0);
    both1 = (int32_t)((uint32_t)both1 - (uint32_t)a1);
#endif
    results[0] = a0;
    results[1] = a1;
    results[2] = both0 >> 8;
    results[3] = both1 >> 8;
    results += 4;
    if (results < set_end) continue;
    if (results >= results_end) return w;
    set_end += 2 * share;
    list = list_end;
    list_end += words_of_set;
  }
}
#else
/* Sums of outputs d to end - 1 over listed words: those of the first set, up to list_end, and of others behind it.
   Returns the weights behind. */
INLINE const int8_t* sum_list(int32_t* results, const int8_t* w, const Words* list, const Words* list_end,
                              const Conv* conv, int32_t d, int32_t end, int32_t is_signed) {
  const int32_t count = (int32_t)(list_end - list);
  for (int32_t in_set = 0; d < end; d += 2, in_set += 2) {
    Sums sums = {0, 0, 0, 0};
    if (in_set == conv->share_outputs) {
      in_set = 0;
      list += count;
    }
    for (int32_t i = 0; i < count; ++i, w += 8) add_words(&sums, w, list[i], is_signed);
    results = put_sums(results, sums);
  }
  return w;
}

APART const int8_t* sum_listed(int32_t* results, const int8_t* w, const Words* list, const Words* list_end,
                               const Conv* conv, int32_t d, int32_t end, int32_t is_signed) {
  return is_signed ? sum_list(results, w, list, list_end, conv, d, end, 1)
                   : sum_list(results, w, list, list_end, conv, d, end, 0);
}
#endif
#endif
