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

/* The same for listed words, from one to list_end. Returns the weights behind. Compilers read ahead here, for which
   there are no registers. */
INLINE const int8_t* add_listed(Sums* sums, const int8_t* w, const Words* words, const Words* list_end,
                                int32_t is_signed) {
  uint32_t weights, even, even0, odd0, even1, odd1;
  (void)is_signed;
  while (words < list_end) {
    __asm__(
        "ldr %[weights], [%[w]], #4\n\t"
        "ldrd %[even0], %[odd0], [%[words]], #8\n\t"
        "ldrd %[even1], %[odd1], [%[words]], #8\n\t"
        "sxtb16 %[even], %[weights]\n\t"
        "smlad %[a0], %[even], %[even0], %[a0]\n\t"
        "smlad %[a1], %[even], %[even1], %[a1]\n\t"
        "sxtb16 %[even], %[weights], ror #8\n\t"
        "ldr %[weights], [%[w]], #4\n\t"
        "smlad %[a0], %[even], %[odd0], %[a0]\n\t"
        "smlad %[a1], %[even], %[odd1], %[a1]\n\t"
        "sxtb16 %[even], %[weights]\n\t"
        "smlad %[b0], %[even], %[even0], %[b0]\n\t"
        "smlad %[b1], %[even], %[even1], %[b1]\n\t"
        "sxtb16 %[even], %[weights], ror #8\n\t"
        "smlad %[b0], %[even], %[odd0], %[b0]\n\t"
        "smlad %[b1], %[even], %[odd1], %[b1]"
        : [a0] "+r"(sums->a0), [a1] "+r"(sums->a1), [b0] "+r"(sums->b0), [b1] "+r"(sums->b1), [w] "+r"(w),
          [words] "+r"(words), [weights] "=&r"(weights), [even] "=&r"(even), [even0] "=&r"(even0), [odd0] "=&r"(odd0),
          [even1] "=&r"(even1), [odd1] "=&r"(odd1)
        :
        : "memory");
  }
  return w;
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

INLINE const int8_t* add_listed(Sums* sums, const int8_t* w, const Words* words, const Words* list_end,
                                int32_t is_signed) {
  for (; words < list_end; ++words, w += 8) add_words(sums, w, *words, is_signed);
  return w;
}
#endif

INLINE Sums start_of(const Conv* conv, int32_t d) {
  Sums sums = {0, 0, 0, 0};
  if (conv->bias != NULL) { /* of an even number of outputs */
    sums.a0 = sums.a1 = conv->bias[d] * (1 << conv->bias_shift);
    sums.b0 = sums.b1 = conv->bias[d + 1] * (1 << conv->bias_shift);
  }
  return sums;
}

INLINE int32_t* put_sums(int32_t* results, Sums sums) {
  results[0] = sums.a0;
  results[1] = sums.a1;
  results[2] = sums.b0;
  results[3] = sums.b1;
  return results + 4;
}

INLINE const int8_t* sum_list(int32_t* results, const int8_t* w, const Words* list, const Words* list_end,
                              const Conv* conv, int32_t d, int32_t end, int32_t is_signed) {
  for (; d < end; d += 2) {
    Sums sums = start_of(conv, d);
    w = add_listed(&sums, w, list, list_end, is_signed);
    results = put_sums(results, sums);
  }
  return w;
}

/* Sums of outputs d to end - 1 over listed words. Returns the weights behind. */
APART const int8_t* sum_listed(int32_t* results, const int8_t* w, const Words* list, const Words* list_end,
                               const Conv* conv, int32_t d, int32_t end, int32_t is_signed) {
#ifdef DSP
  return sum_list(results, w, list, list_end, conv, d, end, is_signed); /* the same for both */
#else
  return is_signed ? sum_list(results, w, list, list_end, conv, d, end, 1)
                   : sum_list(results, w, list, list_end, conv, d, end, 0);
#endif
}

/* Sums of outputs d to end - 1 over words that are not listed: there are too many. */
INLINE const int8_t* sum_words(int32_t* results, const int8_t* w, const Conv* conv, const Taps* taps,
                               const uint8_t* codes, const uint8_t* base, int32_t d, int32_t end, int32_t is_signed) {
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  for (; d < end; d += 2) {
    Sums sums = start_of(conv, d);
    int32_t code = 0;
    for (int32_t c = 0; c < conv->inputs; c += conv->block_inputs) {
      const int32_t rest = conv->inputs - c;
      const int32_t count = rest < conv->block_inputs ? rest : conv->block_inputs;
      for (int32_t t = 0; t < conv->taps; ++t, ++code) {
        const int32_t position = codes == NULL ? t : code_at(codes, code);
        if (HAS_EMPTY && position >= positions) continue;
        const uint8_t *x0 = base + c + taps->place[position][0], *x1 = base + c + taps->place[position][1];
        for (int32_t i = 0; i < count; i += 4, w += 8) {
          add_words(&sums, w, words_at(x0 + i, x1 + i, is_signed), is_signed);
        }
      }
    }
    results = put_sums(results, sums);
  }
  return w;
}

APART const int8_t* sum_unlisted(int32_t* results, const int8_t* w, const Conv* conv, const Taps* taps,
                                 const uint8_t* codes, const uint8_t* base, int32_t d, int32_t end, int32_t is_signed) {
  return is_signed ? sum_words(results, w, conv, taps, codes, base, d, end, 1)
                   : sum_words(results, w, conv, taps, codes, base, d, end, 0);
}

/* Lists the words that outputs with these codes read, in the order of their weights. Returns the end of the list. */
typedef Words* ListWords(Words* list, const Conv* conv, const Taps* taps, const uint8_t* codes, const uint8_t* base);

/* A convolution whose positions are those of blocks of outputs and inputs, multiples of 2 and of 4:
   weights [2 outputs][block][tap][4 inputs of the block][output][input]. */
static void conv_words(const Step* step, const Memory* memory, int32_t y, int32_t is_signed, ListWords* list_words) {
  const Conv* conv = (const Conv*)step->layer;
  const int32_t outputs = conv->outputs;
  const int32_t is_listed = ALL_LISTED || conv->blocks * conv->taps * ((conv->block_inputs + 3) / 4) <= WORDS;
  int32_t results[2 * RESULTS];
  Words list[WORDS], *list_end = list;
  Taps taps;
  Target target;
  taps.valid = 0;
  start_row(&target, step, memory, y);
  for (int32_t x = 0; x < step->output->width; x += 2) {
    const uint8_t* base = taps_at(&taps, &conv->window, step->inputs[0], step->output, memory, y, x);
    const int8_t* w = conv->weights;
    const uint8_t *codes = NULL, *next_codes = conv->codes;
    int32_t d = 0, set_end = 0; /* outputs until there have these codes */
    move_to(&target, x);
    while (d < outputs) {
      const int32_t first = d, end = first + RESULTS < outputs ? first + RESULTS : outputs;
      while (d < end) {
        if (d == set_end) {
          set_end += conv->share_outputs;
          codes = next_codes;
          if (codes != NULL) next_codes += conv->code_bytes;
          if (is_listed) list_end = list_words(list, conv, &taps, codes, base);
        }
        const int32_t until = set_end < end ? set_end : end;
        int32_t* result = results + 2 * (d - first);
        w = is_listed ? sum_listed(result, w, list, list_end, conv, d, until, is_signed)
                      : sum_unlisted(result, w, conv, &taps, codes, base, d, until, is_signed);
        d = until;
      }
      finish(conv, &target, first, end, results);
    }
  }
}
#endif
