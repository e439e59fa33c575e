#ifndef VECTORS
/* The words of blocks of inputs. */
INLINE Words* list_blocks(Words* list, const Conv* conv, const Taps* taps, const uint8_t* codes, const uint8_t* base,
                          int32_t is_signed, int32_t is_dense) {
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  int32_t code = 0;
  for (int32_t c = 0; c < conv->inputs; c += conv->block_inputs) {
    const int32_t rest = conv->inputs - c;
    const int32_t count = rest < conv->block_inputs ? rest : conv->block_inputs;
    for (int32_t t = 0; t < conv->taps; ++t, ++code) {
      const int32_t position = is_dense ? t : code_at(codes, code);
      if (HAS_EMPTY && position >= positions) continue;
      const uint8_t *x0 = base + c + taps->place[position][0], *x1 = base + c + taps->place[position][1];
      for (int32_t i = 0; i < count; i += 4) *list++ = words_at(x0 + i, x1 + i, is_signed);
    }
  }
  return list;
}
#endif
