#ifdef VECTORS
INLINE int32x4_t bytes_at(const uint8_t* base, const int32_t* places, mve_pred16_t some, int32_t is_signed) {
  const uint32x4_t at = vreinterpretq_u32_s32(vld1q_s32(places));
  return is_signed ? vldrbq_gather_offset_z_s32((const int8_t*)base, at, some)
                   : vreinterpretq_s32_u32(vldrbq_gather_offset_z_u32(base, at, some));
}

/* A convolution of one group with positions of its own for every input, or for odd blocks of them:
   weights [output][block][tap][input of the block]. Four inputs of four outputs of two pixels at a time; outputs with
   positions of their own one by one. */
INLINE void conv_bytes(const Step* step, const Memory* memory, int32_t y, int32_t is_signed) {
  const Conv* conv = (const Conv*)step->layer;
  const Value *in = step->inputs[0], *out = step->output;
  const int32_t has_fours = conv->share_outputs % 4 == 0 || conv->share_outputs >= conv->outputs;
  const int32_t few = has_fours ? 4 : 1; /* outputs that have their positions in common */
  Taps taps;
  List list;
  Target target;
  taps.valid = 0;
  start_row(&target, step, memory, y);
  for (int32_t x = 0; x < out->width; x += 2) {
    const uint8_t* base = taps_at(&taps, &conv->window, in, out, memory, y, x);
    const int8_t* w = conv->weights;
    BARRIER();
    list.codes = NULL;
    move_to(&target, x);
    for (int32_t d = 0; d < conv->outputs; d += few) {
      const int32_t end = d + few < conv->outputs ? d + few : conv->outputs;
      int32_t a0 = 0, a1 = 0, b0 = 0, b1 = 0, c0 = 0, c1 = 0, d0 = 0, d1 = 0;
      make_list(&list, conv, &taps, conv->codes + d / conv->share_outputs * conv->code_bytes, 1);
      const int32_t count = list.count;
      if (end - d == 4) {
        const int8_t *wb = w + count, *wc = wb + count, *wd = wc + count;
        for (int32_t i = 0; i < count; i += 4) {
          const mve_pred16_t some = vctp32q((uint32_t)(count - i));
          const int32x4_t x0 = bytes_at(base, list.place[0] + i, some, is_signed);
          const int32x4_t x1 = bytes_at(base, list.place[1] + i, some, is_signed);
          const int32x4_t a = vldrbq_z_s32(w + i, some), b = vldrbq_z_s32(wb + i, some);
          const int32x4_t c = vldrbq_z_s32(wc + i, some), e = vldrbq_z_s32(wd + i, some);
          a0 = vmladavaq_s32(a0, x0, a);
          a1 = vmladavaq_s32(a1, x1, a);
          b0 = vmladavaq_s32(b0, x0, b);
          b1 = vmladavaq_s32(b1, x1, b);
          c0 = vmladavaq_s32(c0, x0, c);
          c1 = vmladavaq_s32(c1, x1, c);
          d0 = vmladavaq_s32(d0, x0, e);
          d1 = vmladavaq_s32(d1, x1, e);
        }
        w += 4 * count;
        const int32_t results[8] = {a0, b0, c0, d0, a1, b1, c1, d1};
        finish(conv, &target, d, end, results);
        continue;
      }
      int32_t results[8] = {0};
      for (int32_t output = 0; output < end - d; ++output, w += count) {
        a0 = a1 = 0;
        for (int32_t i = 0; i < count; i += 4) {
          const mve_pred16_t some = vctp32q((uint32_t)(count - i));
          const int32x4_t a = vldrbq_z_s32(w + i, some);
          a0 = vmladavaq_s32(a0, bytes_at(base, list.place[0] + i, some, is_signed), a);
          a1 = vmladavaq_s32(a1, bytes_at(base, list.place[1] + i, some, is_signed), a);
        }
        results[output] = a0;
        results[PIXEL + output] = a1;
      }
      finish(conv, &target, d, end, results);
    }
  }
}

INLINE int32x4_t four_bytes(const uint8_t* from, mve_pred16_t some, int32_t is_signed) {
  return is_signed ? vldrbq_z_s32((const int8_t*)from, some) : vreinterpretq_s32_u32(vldrbq_z_u32(from, some));
}

/* A convolution of every channel alone, all positions: four channels of two pixels at a time. */
INLINE void conv_channels(const Step* step, const Memory* memory, int32_t y, int32_t is_signed) {
  const Conv* conv = (const Conv*)step->layer;
  const Value *in = step->inputs[0], *out = step->output;
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  const uint32x4_t outputs = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)positions);
  Taps taps;
  Target target;
  taps.valid = 0;
  start_row(&target, step, memory, y);
  for (int32_t x = 0; x < out->width; x += 2) {
    const uint8_t* base = taps_at(&taps, &conv->window, in, out, memory, y, x);
    const int8_t* w = conv->weights;
    move_to(&target, x);
    for (int32_t d = 0; d < conv->outputs; d += 4, w += 4 * positions) {
      const int32_t end = d + 4 < conv->outputs ? d + 4 : conv->outputs;
      const mve_pred16_t some = vctp32q((uint32_t)(end - d));
      int32x4_t sum0 = vdupq_n_s32(0), sum1 = sum0;
      for (int32_t position = 0; position < positions; ++position) {
        const int32x4_t weights = vldrbq_gather_offset_z_s32(w + position, outputs, some);
        const int32x4_t x0 = four_bytes(base + taps.place[position][0] + d, some, is_signed);
        const int32x4_t x1 = four_bytes(base + taps.place[position][1] + d, some, is_signed);
        sum0 = vaddq_s32(sum0, vmulq_s32(x0, weights));
        sum1 = vaddq_s32(sum1, vmulq_s32(x1, weights));
      }
      int32_t results[8];
      vst1q_s32(results, sum0);
      vst1q_s32(results + PIXEL, sum1);
      finish(conv, &target, d, end, results);
    }
  }
}
#endif
