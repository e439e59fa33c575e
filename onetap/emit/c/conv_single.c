/* Any convolution: weights [output][block][tap][input of the block]. */
INLINE void conv_any(const Step* step, const Memory* memory, int32_t y, int32_t is_signed) {
  const Conv* conv = (const Conv*)step->layer;
  const Value *in = step->inputs[0], *out = step->output;
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  Taps taps;
  Target target;
  taps.valid = 0;
  start_row(&target, step, memory, y);
  for (int32_t x = 0; x < out->width; x += 2) {
    const uint8_t* base = taps_at(&taps, &conv->window, in, out, memory, y, x);
    const int8_t* w = conv->weights;
    move_to(&target, x);
    for (int32_t d = 0; d < conv->outputs; ++d) {
      const int32_t begin = d / (conv->outputs / conv->groups) * conv->inputs;
      const uint8_t* codes = conv->codes != NULL ? conv->codes + d / conv->share_outputs * conv->code_bytes : NULL;
      int32_t code = 0;
      int32_t sums[2 * PIXEL] = {0}, sum0 = 0, sum1 = 0;
      for (int32_t c = 0; c < conv->inputs; c += conv->block_inputs) {
        const int32_t rest = conv->inputs - c;
        const int32_t count = rest < conv->block_inputs ? rest : conv->block_inputs;
        for (int32_t t = 0; t < conv->taps; ++t, ++code) {
          const int32_t position = codes != NULL ? code_at(codes, code) : t;
          if (position >= positions) continue; /* empty */
          const uint8_t* x0 = base + taps.place[position][0] + begin + c;
          const uint8_t* x1 = base + taps.place[position][1] + begin + c;
          for (int32_t i = 0; i < count; ++i) {
            sum0 += *w * byte_value(x0[i], is_signed);
            sum1 += *w++ * byte_value(x1[i], is_signed);
          }
        }
      }
      sums[0] = sum0;
      sums[PIXEL] = sum1;
      finish(conv, &target, d, d + 1, sums);
    }
  }
}

/* The best form of it for the machine. */
INLINE void conv_single(const Step* step, const Memory* memory, int32_t y, int32_t is_signed) {
#ifdef VECTORS
  const Conv* conv = (const Conv*)step->layer;
  if (conv->groups == 1 && conv->inputs * conv->taps <= LIST) {
    conv_bytes(step, memory, y, is_signed);
    return;
  }
  if (conv->groups == conv->outputs && conv->inputs == 1 && conv->codes == NULL) {
    conv_channels(step, memory, y, is_signed);
    return;
  }
#elif defined(DSP)
  const Conv* conv = (const Conv*)step->layer;
  if (conv->inputs * conv->taps <= 4 * GATHERED) {
    conv_gathered(step, memory, y, is_signed);
    return;
  }
#endif
  conv_any(step, memory, y, is_signed);
}
