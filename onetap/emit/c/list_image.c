#ifndef VECTORS
#ifdef DSP
INLINE uint32_t two_halves(uint32_t low, uint32_t high) {
  uint32_t both;
  __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(both) : "r"(low), "r"(high));
  return both;
}

/* Three inputs of every position: halves of words are inputs 0 and 2 of each position, then input 1 of each two. What
   is not there has weights of 0. */
INLINE Words* list_image(Words* list, const Conv* conv, const Taps* taps, const uint8_t* base, const uint8_t* codes,
                         const uint8_t* codes_end, int32_t is_signed) {
  uint32_t* halves = (uint32_t*)(void*)list; /* even0, odd0, even1, odd1 */
  (void)codes;
  (void)codes_end;
  for (int32_t t = 0; t < conv->taps; ++t) {
    const Words words = words_at(base + taps->place[t][0], base + taps->place[t][1], is_signed);
    const int32_t k = conv->taps + (t >> 1);
    uint32_t *pair = halves + 4 * (t >> 1) + (t & 1), *single = halves + 4 * (k >> 1) + (k & 1);
    pair[0] = words.even0;
    pair[2] = words.even1;
    single[0] = t % 2 == 0 ? words.odd0 : two_halves(single[0], words.odd0);
    single[2] = t % 2 == 0 ? words.odd1 : two_halves(single[2], words.odd1);
  }
  return list + (3 * conv->taps + 3) / 4;
}
#else
INLINE Words* list_image(Words* list, const Conv* conv, const Taps* taps, const uint8_t* base, const uint8_t* codes,
                         const uint8_t* codes_end, int32_t is_signed) {
  return list_blocks(list, conv, taps, base, codes, codes_end, is_signed, 1);
}
#endif
#endif
