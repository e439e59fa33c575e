/* Numbers scaled by vectors (four at once) or by DSP instructions are those scaled by plain C, for every shift. The
   code of a network is included. */
#include SOURCE
#include "board.h"

static uint32_t state = 1;

static int32_t next_number(void) {
  state = state * 1664525u + 1013904223u;
  return (int32_t)state;
}

#ifndef VECTORS
/* Whether a sum and one beside it become what they should, as bytes of both kinds. */
static int32_t is_finished(int32_t number, int32_t multiplier, int32_t shift) {
  for (int32_t is_signed = 0; is_signed < 2 && shift > 0; ++is_signed) {
    const int32_t half = 1 << (shift - 1), bias_unit = 2, sums[2] = {number, number ^ 1};
    const int16_t bias = 0;
    const uint8_t scale_of = 0;
    uint8_t bytes[2] = {0, 0};
    Scale scale;
    Conv conv;
    Target target;
    scale.multiplier = multiplier;
    scale.shift_less_1 = shift - 1;
    scale.half = is_signed ? -half : half;
    conv.scales = &scale;
    conv.scale_of = &scale_of;
    conv.bias = &bias;
    target.to[0] = &bytes[0];
    target.to[1] = &bytes[1];
    if (is_signed) {
      finish_signed(&conv, &target, 0, 1, sums, bias_unit);
    } else {
      finish_unsigned(&conv, &target, 0, 1, sums, bias_unit);
    }
    for (int32_t i = 0; i < 2; ++i) {
      if (bytes[i] != clamp_byte(requantize(sums[i], multiplier, shift), is_signed)) return 0;
    }
  }
  return 1;
}
#endif

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
        if (!is_finished(number, by, shift)) return 1;
      }
#endif
    }
  }
  return 0;
}
