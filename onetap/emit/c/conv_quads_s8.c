#ifndef VECTORS
static Words* list_quads_s8(Words* list, const Conv* conv, const Taps* taps, const uint8_t* base, const uint8_t* codes,
                            const uint8_t* codes_end) {
  return list_quads(list, conv, taps, base, codes, codes_end, 1);
}

static void conv_quads_s8(const Step* step, const Memory* memory, int32_t y) {
  conv_words(step, memory, y, 1, list_quads_s8);
}
#else
static void conv_quads_s8(const Step* step, const Memory* memory, int32_t y) {
  conv_words(step, memory, y, 1, 0);
}
#endif
