#ifndef VECTORS
/* The words of blocks of inputs. */
INLINE Words* list_blocks(Words* list, const Conv* conv, const Taps* taps, const uint8_t* base, const uint8_t* codes,
                          const uint8_t* codes_end, int32_t is_signed, int32_t is_dense) {
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  do {
    int32_t code = 0;
    for (int32_t c = 0; c < conv->inputs; c += conv->block_inputs) {
      const int32_t rest = conv->inputs - c;
      const int32_t count = rest < conv->block_inputs ? rest : conv->block_inputs;
      for (int32_t t = 0; t < conv->taps; ++t, ++code) {
        const int32_t position = is_dense ? t : code_at(codes, code);
        if (HAS_EMPTY && position >= positions) continue;
        for (int32_t i = c; i < c + count; i += 4) list = put_words(list, base + i, taps, position, is_signed);
      }
    }
    if (!is_dense) codes += conv->code_bytes;
  } while (!is_dense && codes < codes_end);
  return list;
}
#endif
