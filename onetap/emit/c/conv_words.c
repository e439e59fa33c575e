#ifndef VECTORS
/* Sums of two outputs a and b of two pixels: as many as a Cortex-M has registers for. */
typedef struct {
  int32_t a0, a1, b0, b1;
} Sums;

#define RESULTS 8 /* outputs that are finished together */

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
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
  __builtin_memcpy(&word, bytes, sizeof word);
  return word;
}

INLINE void add_output(int32_t* sum0, int32_t* sum1, uint32_t weights, uint32_t even0, uint32_t odd0, uint32_t even1,
                       uint32_t odd1) {
  const uint32_t even = even_signed(weights), odd = odd_signed(weights);
  *sum0 = add_products(add_products(*sum0, even, even0), odd, odd0);
  *sum1 = add_products(add_products(*sum1, even, even1), odd, odd1);
}

/* Adds the products of four inputs, one word, and four weights of each output. */
INLINE void add_words(Sums* sums, const int8_t* w, const uint8_t* x0, const uint8_t* x1, int32_t is_signed) {
  const uint32_t word0 = word_at(x0), word1 = word_at(x1);
  const uint32_t even0 = is_signed ? even_signed(word0) : even_unsigned(word0);
  const uint32_t odd0 = is_signed ? odd_signed(word0) : odd_unsigned(word0);
  const uint32_t even1 = is_signed ? even_signed(word1) : even_unsigned(word1);
  const uint32_t odd1 = is_signed ? odd_signed(word1) : odd_unsigned(word1);
  add_output(&sums->a0, &sums->a1, word_at(w), even0, odd0, even1, odd1);
  add_output(&sums->b0, &sums->b1, word_at(w + 4), even0, odd0, even1, odd1);
}
#else
/* Adds the products of four inputs and four weights of each output. */
INLINE void add_words(Sums* sums, const int8_t* w, const uint8_t* x0, const uint8_t* x1, int32_t is_signed) {
  for (int32_t i = 0; i < 4; ++i) {
    const int32_t value0 = byte_value(x0[i], is_signed), value1 = byte_value(x1[i], is_signed);
    sums->a0 += w[i] * value0;
    sums->a1 += w[i] * value1;
    sums->b0 += w[4 + i] * value0;
    sums->b1 += w[4 + i] * value1;
  }
}
#endif

/* Adds a block of inputs at one position. */
INLINE const int8_t* add_block(Sums* sums, const int8_t* w, const uint8_t* base, const int32_t* place, int32_t count,
                               int32_t is_signed) {
  const uint8_t *x0 = base + place[0], *x1 = base + place[1];
  for (int32_t i = 0; i < count; i += 4, w += 8) add_words(sums, w, x0 + i, x1 + i, is_signed);
  return w;
}

/* Adds a word of inputs at a position, if it is not empty. */
INLINE const int8_t* add_word(Sums* sums, const int8_t* w, const uint8_t* base, const Taps* taps, int32_t position,
                              int32_t positions, int32_t is_signed) {
  if (HAS_EMPTY && position >= positions) return w;
  add_words(sums, w, base + taps->place[position][0], base + taps->place[position][1], is_signed);
  return w + 8;
}

/* All blocks of two outputs, each at its positions. */
INLINE const int8_t* add_blocks(Sums* sums, const int8_t* w, const Conv* conv, const Taps* taps, const uint8_t* codes,
                                const uint8_t* base, int32_t is_signed) {
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  if (conv->block_inputs == 4 && conv->taps == 1) { /* the usual case, one word at a time */
    for (const uint8_t* end = base + conv->inputs; base < end;) {
      const int32_t pair = *codes++; /* of positions, where they have 4 bits */
      w = add_word(sums, w, base, taps, CODE_BITS == 4 ? pair & 15 : pair, positions, is_signed);
      base += 4;
      if (CODE_BITS == 8 || base >= end) continue;
      w = add_word(sums, w, base, taps, pair >> 4, positions, is_signed);
      base += 4;
    }
    return w;
  }
  int32_t code = 0;
  for (int32_t c = 0; c < conv->inputs; c += conv->block_inputs) {
    const int32_t rest = conv->inputs - c;
    const int32_t count = rest < conv->block_inputs ? rest : conv->block_inputs;
    for (int32_t t = 0; t < conv->taps; ++t, ++code) {
      const int32_t position = code_at(codes, code);
      if (HAS_EMPTY && position >= positions) continue;
      w = add_block(sums, w, base + c, taps->place[position], count, is_signed);
    }
  }
  return w;
}

/* A convolution whose positions are those of blocks of outputs and inputs, multiples of 2 and of 4:
   weights [2 outputs][block][tap][4 inputs of the block][output][input]. */
INLINE void conv_words(const Step* step, const Memory* memory, int32_t y, int32_t is_signed, int32_t is_dense) {
  const Conv* conv = (const Conv*)step->layer;
  const Value *in = step->inputs[0], *out = step->output;
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  int32_t results[2 * RESULTS];
  Taps taps;
  Target target;
  taps.valid = 0;
  start_row(&target, step, memory, y);
  for (int32_t x = 0; x < out->width; x += 2) {
    const uint8_t* base = taps_at(&taps, &conv->window, in, out, memory, y, x);
    const int8_t* w = conv->weights;
    const uint8_t* codes = conv->codes;
    int32_t shared = 0; /* outputs that have had these codes */
    move_to(&target, x);
    for (int32_t first = 0; first < conv->outputs; first += RESULTS) {
      const int32_t end = first + RESULTS < conv->outputs ? first + RESULTS : conv->outputs;
      int32_t* result = results;
      for (int32_t d = first; d < end; d += 2, result += 4) {
        Sums sums;
        sums.a0 = sums.a1 = bias_of(conv, d);
        sums.b0 = sums.b1 = bias_of(conv, d + 1);
        if (is_dense && conv->inputs <= 4) { /* an image's channels: one word */
          for (int32_t position = 0; position < positions; ++position, w += 8) {
            add_words(&sums, w, base + taps.place[position][0], base + taps.place[position][1], is_signed);
          }
        } else if (is_dense) {
          for (int32_t position = 0; position < positions; ++position) {
            w = add_block(&sums, w, base, taps.place[position], conv->inputs, is_signed);
          }
        } else {
          w = add_blocks(&sums, w, conv, &taps, codes, base, is_signed);
          shared += 2;
          if (shared >= conv->share_outputs) {
            shared = 0;
            codes += conv->code_bytes;
          }
        }
        result[0] = sums.a0;
        result[1] = sums.a1;
        result[2] = sums.b0;
        result[3] = sums.b1;
      }
      finish(conv, &target, first, end, results);
    }
  }
}
#endif
