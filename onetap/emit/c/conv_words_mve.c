#ifdef VECTORS
/* Every other word: those of output a (0) or b (1). (gcc 12 writes VLD2, which would do, with an address that its
   assembler refuses.) */
INLINE uint32x4_t word_offsets(int32_t output) {
  const uint32x4_t a = {0, 8, 16, 24}, b = {4, 12, 20, 28};
  return output == 0 ? a : b;
}

INLINE int8x16_t four_words(const int8_t* w, int32_t output) {
  return vreinterpretq_s8_u32(vldrwq_gather_offset_u32((const uint32_t*)(const void*)w, word_offsets(output)));
}

INLINE int8x16_t some_words(const int8_t* w, int32_t output, mve_pred16_t some) {
  const uint32_t* words = (const uint32_t*)(const void*)w;
  return vreinterpretq_s8_u32(vldrwq_gather_offset_z_u32(words, word_offsets(output), some));
}

/* Sums of two outputs a and b of two pixels: more would not stay in registers. */
typedef struct {
  int32_t a0, a1, b0, b1;
} Sums;

/* Unsigned bytes less 128 are signed ones; Conv.start has 128 times the sum of the weights. */
INLINE int8x16_t signed_bytes(uint8x16_t bytes, int32_t is_signed) {
  return vreinterpretq_s8_u8(is_signed ? bytes : veorq_u8(bytes, vdupq_n_u8(128)));
}

INLINE void add_products(Sums* sums, int8x16_t a, int8x16_t b, uint8x16_t bytes0, uint8x16_t bytes1,
                         int32_t is_signed) {
  const int8x16_t x0 = signed_bytes(bytes0, is_signed), x1 = signed_bytes(bytes1, is_signed);
  sums->a0 = vmladavaq_s8(sums->a0, x0, a);
  sums->a1 = vmladavaq_s8(sums->a1, x1, a);
  sums->b0 = vmladavaq_s8(sums->b0, x0, b);
  sums->b1 = vmladavaq_s8(sums->b1, x1, b);
}

INLINE uint8x16_t words_at(const uint8_t* base, const int32_t* places) {
  const uint32x4_t at = vreinterpretq_u32_s32(vld1q_s32(places));
  return vreinterpretq_u8_u32(vldrwq_gather_offset_u32((const uint32_t*)(const void*)base, at));
}

INLINE uint8x16_t some_words_at(const uint8_t* base, const int32_t* places, mve_pred16_t some) {
  const uint32x4_t at = vreinterpretq_u32_s32(vldrwq_z_s32(places, some));
  return vreinterpretq_u8_u32(vldrwq_gather_offset_z_u32((const uint32_t*)(const void*)base, at, some));
}

/* Words of inputs that lie anywhere. */
INLINE const int8_t* add_listed(Sums* sums, const int8_t* w, const uint8_t* base, const List* list, int32_t is_signed) {
  const int32_t *place0 = list->place[0], *place1 = list->place[1];
  int32_t rest = list->count;
  for (; rest >= 4; rest -= 4, w += 32, place0 += 4, place1 += 4) {
    add_products(sums, four_words(w, 0), four_words(w, 1), words_at(base, place0), words_at(base, place1), is_signed);
  }
  if (rest > 0) {
    const mve_pred16_t some = vctp32q((uint32_t)rest);
    add_products(sums, some_words(w, 0, some), some_words(w, 1, some), some_words_at(base, place0, some),
                 some_words_at(base, place1, some), is_signed);
  }
  return w + 8 * rest;
}

/* How many positions in a row of the kernel lie side by side, for both pixels: all of them, or one. */
INLINE int32_t positions_together(const Taps* taps, const Window* window, int32_t bytes) {
  const int32_t(*place)[2] = taps->place;
  for (int32_t i = 0; i < window->kernel_h; ++i, ++place) {
    for (int32_t j = 1; j < window->kernel_w; ++j, ++place) {
      if (place[1][0] - place[0][0] != bytes || place[1][1] - place[0][1] != bytes) return 1;
    }
  }
  return window->kernel_w;
}

/* Bytes of inputs side by side, at every position, or at every so many positions (`together`). */
INLINE const int8_t* add_dense(Sums* sums, const int8_t* w, const uint8_t* base, const Taps* taps, int32_t positions,
                               int32_t together, int32_t bytes, int32_t is_signed) {
  for (int32_t position = 0; position < positions; position += together) {
    const uint8_t *x0 = base + taps->place[position][0], *x1 = base + taps->place[position][1];
    int32_t rest = bytes;
    for (; rest >= 16; rest -= 16, w += 32, x0 += 16, x1 += 16) {
      add_products(sums, four_words(w, 0), four_words(w, 1), vld1q_u8(x0), vld1q_u8(x1), is_signed);
    }
    if (rest > 0) {
      const uint32_t words = (uint32_t)rest / 4;
      const mve_pred16_t some = vctp32q(words);
      add_products(sums, some_words(w, 0, some), some_words(w, 1, some), vldrbq_z_u8(x0, some), vldrbq_z_u8(x1, some),
                   is_signed);
      w += 8 * words;
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
  const int32_t is_listed = !is_dense || conv->inputs <= 4; /* an image's channels: a word at every position */
  const int32_t bytes = (conv->inputs + 3) & ~3;            /* of a pixel */
  int32_t results[2 * PIXEL];
  Taps taps;
  List list;
  Target target;
  taps.valid = 0;
  start_row(&target, step, memory, y);
  for (int32_t x = 0; x < out->width; x += 2) {
    const uint8_t* base = taps_at(&taps, &conv->window, in, out, memory, y, x);
    const int8_t* w = conv->weights;
    const uint8_t* codes = conv->codes;
    int32_t shared = 0; /* outputs that have had these codes */
    BARRIER();
    list.codes = NULL;
    move_to(&target, x);
    if (is_dense && is_listed) list_positions(&list, &taps, positions);
    const int32_t together = is_listed ? 1 : positions_together(&taps, &conv->window, bytes);
    for (int32_t d = 0; d < conv->outputs; d += 2) {
      Sums sums = {0, 0, 0, 0};
      if (!is_dense) {
        make_list(&list, conv, &taps, codes, 4);
        shared += 2;
        if (shared >= conv->share_outputs) {
          shared = 0;
          codes += conv->code_bytes;
        }
      }
      w = is_listed ? add_listed(&sums, w, base, &list, is_signed)
                    : add_dense(&sums, w, base, &taps, positions, together, together * bytes, is_signed);
      int32_t* result = results + (d & 2);
      result[0] = sums.a0;
      result[1] = sums.b0;
      result[PIXEL] = sums.a1;
      result[PIXEL + 1] = sums.b1;
      const int32_t end = d + 2 < conv->outputs ? d + 2 : conv->outputs;
      if (end % 4 == 0 || end == conv->outputs) finish(conv, &target, d & ~3, end, results);
    }
  }
}
#endif
