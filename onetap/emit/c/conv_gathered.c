#if defined(DSP) && !defined(VECTORS)
/* Four inputs of two pixels that lie anywhere, as 16-bit numbers: inputs 0, 2, 1, 3 of one pixel, then of the other. */
typedef struct {
  uint16_t x[8];
} __attribute__((aligned(4))) Gathered;

INLINE uint16_t input_at(const uint8_t* x, int32_t is_signed) {
  return (uint16_t)(is_signed ? (int8_t)*x : *x);
}

INLINE void gather(Gathered* list, int32_t i, const uint8_t* x0, const uint8_t* x1, int32_t is_signed) {
  uint16_t* to = list[i >> 2].x + ((i & 1) << 1 | (i & 2) >> 1);
  to[0] = input_at(x0, is_signed);
  to[4] = input_at(x1, is_signed);
}

/* The inputs of an output, in the order of its weights. Returns how many there are; the last four are filled up with
   zeros. */
INLINE int32_t gather_inputs(Gathered* list, const Conv* conv, const Taps* taps, const uint8_t* codes,
                             const uint8_t* base, int32_t is_signed) {
  static const uint8_t zero = 0;
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  int32_t n = 0, code = 0;
  if (CODE_BITS == 4 && !HAS_EMPTY && conv->block_inputs == 1 && conv->taps == 1 && codes != NULL) {
    /* the usual case */
    for (; n + 4 <= conv->inputs; n += 4, codes += 2, base += 4, ++list) {
      const int32_t *a = taps->place[codes[0] & 15], *b = taps->place[codes[0] >> 4];
      const int32_t *c = taps->place[codes[1] & 15], *d = taps->place[codes[1] >> 4];
      list->x[0] = input_at(base + a[0], is_signed);
      list->x[4] = input_at(base + a[1], is_signed);
      list->x[2] = input_at(base + b[0] + 1, is_signed);
      list->x[6] = input_at(base + b[1] + 1, is_signed);
      list->x[1] = input_at(base + c[0] + 2, is_signed);
      list->x[5] = input_at(base + c[1] + 2, is_signed);
      list->x[3] = input_at(base + d[0] + 3, is_signed);
      list->x[7] = input_at(base + d[1] + 3, is_signed);
    }
    base -= n; /* what is left comes below */
    codes -= n / 2;
    list -= n / 4;
    code = n;
  }
  for (int32_t c = n; c < conv->inputs; c += conv->block_inputs) {
    const int32_t rest = conv->inputs - c;
    const int32_t count = rest < conv->block_inputs ? rest : conv->block_inputs;
    for (int32_t t = 0; t < conv->taps; ++t, ++code) {
      const int32_t position = codes != NULL ? code_at(codes, code) : t;
      if (position >= positions) continue; /* empty */
      const uint8_t *x0 = base + c + taps->place[position][0], *x1 = base + c + taps->place[position][1];
      for (int32_t i = 0; i < count; ++i) gather(list, n++, x0 + i, x1 + i, is_signed);
    }
  }
  for (int32_t i = n; i % 4 != 0; ++i) gather(list, i, &zero, &zero, 0);
  return n;
}

APART int32_t gather_unsigned(Gathered* list, const Conv* conv, const Taps* taps, const uint8_t* codes,
                              const uint8_t* base) {
  return gather_inputs(list, conv, taps, codes, base, 0);
}

APART int32_t gather_signed(Gathered* list, const Conv* conv, const Taps* taps, const uint8_t* codes,
                            const uint8_t* base) {
  return gather_inputs(list, conv, taps, codes, base, 1);
}

/* Outputs d to end - 1 of two pixels, of n inputs. The last word of weights may be partly that of the next output:
   inputs are zeros there. Returns the weights behind. */
APART const int8_t* sum_gathered(int32_t* results, const int8_t* w, const Gathered* list, int32_t n, int32_t d,
                                 int32_t end) {
  for (; d < end; ++d, w += n, results += 2) {
    int32_t sum0 = 0, sum1 = 0;
    const Gathered* words = list;
    for (const int8_t* at = w; at < w + n; at += 4, ++words) {
      uint32_t weights;
      __builtin_memcpy(&weights, at, sizeof weights);
      const uint32_t even = even_signed(weights), odd = odd_signed(weights);
      sum0 = add_products(add_products(sum0, even, word_at(&words->x[0])), odd, word_at(&words->x[2]));
      sum1 = add_products(add_products(sum1, even, word_at(&words->x[4])), odd, word_at(&words->x[6]));
    }
    results[0] = sum0;
    results[1] = sum1;
  }
  return w;
}

/* Any convolution of not too many inputs. */
INLINE void conv_gathered(const Step* step, const Memory* memory, int32_t y, int32_t is_signed) {
  const Conv* conv = (const Conv*)step->layer;
  const int32_t outputs = conv->outputs, group_outputs = outputs / conv->groups;
  Gathered list[GATHERED];
  int32_t results[2 * RESULTS];
  Taps taps;
  Target target;
  taps.valid = 0;
  start_row(&target, step, memory, y);
  for (int32_t x = 0; x < step->output->width; x += 2) {
    const uint8_t* base = taps_at(&taps, &conv->window, step->inputs[0], step->output, memory, y, x);
    const int8_t* w = conv->weights;
    int32_t d = 0, n = 0, set_end = 0, group_end = group_outputs; /* outputs until there have this set, or group */
    move_to(&target, x);
    while (d < outputs) {
      const int32_t first = d, end = first + RESULTS < outputs ? first + RESULTS : outputs;
      while (d < end) {
        if (d == group_end) {
          group_end += group_outputs;
          base += conv->inputs;
        }
        if (d == set_end) {
          const int32_t set = d / conv->share_outputs, next = (set + 1) * conv->share_outputs;
          const uint8_t* codes = conv->codes != NULL ? conv->codes + set * conv->code_bytes : NULL;
          set_end = next < group_end ? next : group_end;
          n = is_signed ? gather_signed(list, conv, &taps, codes, base)
                        : gather_unsigned(list, conv, &taps, codes, base);
        }
        const int32_t until = set_end < end ? set_end : end;
        w = sum_gathered(results + 2 * (d - first), w, list, n, d, until);
        d = until;
      }
      finish(conv, &target, first, end, results);
    }
  }
}
#endif
