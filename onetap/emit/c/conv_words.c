#ifndef VECTORS
/* Sums of outputs d to end - 1 over words that are not listed: there are too many. */
INLINE const int8_t* sum_words(int32_t* results, const int8_t* w, const Conv* conv, const Taps* taps,
                               const uint8_t* codes, const uint8_t* base, int32_t d, int32_t end, int32_t is_signed) {
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  for (; d < end; d += 2) {
    Sums sums = {0, 0, 0, 0};
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

/* Lists the words that sets of outputs read, in the order of their weights: a set has conv->code_bytes of the codes up
   to codes_end. Returns the end of the list. */
typedef Words* ListWords(Words* list, const Conv* conv, const Taps* taps, const uint8_t* base, const uint8_t* codes,
                         const uint8_t* codes_end);

/* A convolution whose positions are those of blocks of outputs and inputs, multiples of 2 and of 4:
   weights [2 outputs][block][tap][4 inputs of the block][output][input], or for listed words as PAIR stores them. */
static void conv_words(const Step* step, const Memory* memory, int32_t y, int32_t is_signed, ListWords* list_words) {
  const Conv* conv = (const Conv*)step->layer;
  const int32_t outputs = conv->outputs, words = conv->taps * ((conv->inputs + 3) / 4);
  const int32_t is_listed = ALL_LISTED || words <= WORDS;
  int32_t results[2 * RESULTS];
  int32_t together = conv->share_outputs, code_bytes = conv->code_bytes; /* outputs whose words are listed together */
  Words list[WORDS], *list_end = list;
  Taps taps;
  Target target;
  taps.valid = 0;
  start_row(&target, step, memory, y);
  const int32_t sets = (outputs + together - 1) / together;
  const uint8_t* codes_end = conv->codes != NULL ? conv->codes + sets * code_bytes : NULL;
  for (int32_t n = words; !HAS_EMPTY && RESULTS % (2 * together) == 0 && 2 * n <= WORDS; n *= 2) {
    together *= 2;
    code_bytes *= 2;
  }
  for (int32_t x = 0; x < step->output->width; x += 2) {
    const uint8_t* base = taps_at(&taps, &conv->window, step->inputs[0], step->output, memory, y, x);
    const int8_t* w = conv->weights;
    const uint8_t *codes = NULL, *next_codes = conv->codes;
    int32_t d = 0, listed = 0; /* outputs until there have these codes */
    move_to(&target, x);
    while (d < outputs) {
      const int32_t first = d, end = first + RESULTS < outputs ? first + RESULTS : outputs;
      while (d < end) {
        if (d == listed) {
          listed += together;
          codes = next_codes;
          if (codes != NULL) next_codes = codes_end - codes > code_bytes ? codes + code_bytes : codes_end;
          if (is_listed) {
            list_end = list_words(list, conv, &taps, base, codes, next_codes);
            if (!HAS_EMPTY && codes != NULL) list_end = list + words; /* of the first set */
          }
        }
        const int32_t until = listed < end ? listed : end;
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
