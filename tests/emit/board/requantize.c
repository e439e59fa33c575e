/* Numbers scaled by vectors (four at once) or by DSP instructions are those scaled by plain C, for every shift. The
   code of a network is included. */
#include SOURCE
#include "board.h"

static uint32_t state = 1;

static int32_t next_number(void) {
  state = state * 1664525u + 1013904223u;
  return (int32_t)state;
}

int32_t board_main(void) {
  static const int32_t edges[] = {0,   1,    -1,    2,      -2,        3,         -3,
                                  127, -128, 32767, -32768, INT32_MAX, INT32_MIN, INT32_MIN + 1};
  const int32_t edge_count = (int32_t)(sizeof edges / sizeof edges[0]);
  for (int32_t shift = 0; shift < 31; ++shift) {
    for (int32_t i = 0; i < 400; ++i) {
      int32_t x[4], multiplier[4];
      for (int32_t k = 0; k < 4; ++k) {
        x[k] = i < edge_count ? edges[i] : next_number() >> (i % 24);
        /* The least and the greatest, and a power of two, whose products are halves. */
        multiplier[k] = k == 0 ? INT32_MAX : k == 1 ? 1 << 30 : (next_number() & 0x3FFFFFFF) | 1 << 30;
      }
#ifdef VECTORS
      int32_t y[4];
      vst1q_s32(y, requantize_four(vld1q_s32(x), vld1q_s32(multiplier), vdupq_n_s32(shift)));
      for (int32_t k = 0; k < 4; ++k) {
        if (y[k] != requantize(x[k], multiplier[k], shift)) return 1;
      }
#else
      for (int32_t k = 0; k < 8; ++k) {
        const int32_t number = k < 4 ? x[k] : (int32_t)((uint32_t)x[k - 4] >> (30 - shift) >> 1),
                      by = multiplier[k & 3];
        for (int32_t is_signed = 0; is_signed < 2; ++is_signed) {
          const uint8_t expected = clamp_byte(requantize(number, by, shift), is_signed);
          if (scaled_byte(number, by, shift, is_signed) != expected) return 1;
        }
      }
#endif
    }
  }
  return 0;
}
