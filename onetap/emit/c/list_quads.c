#ifndef VECTORS
/* One word to a block and one tap: the usual case. */
INLINE Words* list_quads(Words* list, const Conv* conv, const Taps* taps, const uint8_t* codes, const uint8_t* base,
                         int32_t is_signed) {
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  for (const uint8_t* end = base + conv->inputs; base < end; base += 4) {
    int32_t position = *codes++;
    if (CODE_BITS == 4) {
      const int32_t first = position & 15;
      if (!HAS_EMPTY || first < positions) {
        *list++ = words_at(base + taps->place[first][0], base + taps->place[first][1], is_signed);
      }
      base += 4;
      if (base >= end) break;
      position >>= 4;
    }
    if (HAS_EMPTY && position >= positions) continue;
    *list++ = words_at(base + taps->place[position][0], base + taps->place[position][1], is_signed);
  }
  return list;
}
#endif
