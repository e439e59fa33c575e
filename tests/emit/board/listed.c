/* Sums over listed words are exact up to 64 words, the most that are listed, with the largest weights and inputs: DSP
   instructions add products of two outputs at once. The code of a network is included. */
#include SOURCE
#include "board.h"

#define MOST_WORDS 64

static int8_t weights[MOST_WORDS][2][4]; /* of two outputs */
static int8_t stored[8 * MOST_WORDS] __attribute__((aligned(4)));
static uint8_t inputs[2][4 * MOST_WORDS] __attribute__((aligned(4))); /* of two pixels */
static Words list[MOST_WORDS];

/* As model_weights.c has them for this processor. */
static void store(int8_t* to, const int8_t* a, const int8_t* b) {
#if defined(DSP) && !defined(VECTORS)
  static const uint8_t order[4] = {0, 2, 1, 3};
  for (int32_t i = 0; i < 4; ++i) {
    to[2 * i] = a[order[i]];
    to[2 * i + 1] = (int8_t)(b[order[i]] - (a[order[i]] < 0));
  }
#else
  for (int32_t i = 0; i < 4; ++i) {
    to[i] = a[i];
    to[4 + i] = b[i];
  }
#endif
}

#ifndef VECTORS
static int32_t is_exact(int32_t words, int32_t is_signed) {
  int32_t results[4];
  Conv conv = {0};
  conv.outputs = conv.share_outputs = 2;
  for (int32_t i = 0; i < words; ++i) {
    store(stored + 8 * i, weights[i][0], weights[i][1]);
    list[i] = words_at(inputs[0] + 4 * i, inputs[1] + 4 * i, is_signed);
  }
  if (sum_listed(results, stored, list, list + words, &conv, 0, 2, is_signed) != stored + 8 * words) return 0;
  for (int32_t output = 0; output < 2; ++output) {
    for (int32_t pixel = 0; pixel < 2; ++pixel) {
      int64_t sum = 0;
      for (int32_t i = 0; i < 4 * words; ++i) {
        sum += weights[i / 4][output][i % 4] * byte_value(inputs[pixel][i], is_signed);
      }
      if (results[2 * output + pixel] != sum) return 0;
    }
  }
  return 1;
}
#endif

int32_t board_main(void) {
#ifndef VECTORS
  static const int8_t extremes[5] = {127, -127, 0, -1, 1};
  for (int32_t words = 1; words <= MOST_WORDS; ++words) {
    for (int32_t pair = 0; pair < 25; ++pair) {
      for (int32_t is_signed = 0; is_signed < 2; ++is_signed) {
        for (int32_t i = 0; i < 4 * words; ++i) {
          weights[i / 4][0][i % 4] = extremes[pair / 5];
          weights[i / 4][1][i % 4] = extremes[pair % 5];
          inputs[0][i] = is_signed ? 127 : 255;
          inputs[1][i] = is_signed ? 129 : (uint8_t)(i * 37); /* -127; anything */
        }
        if (!is_exact(words, is_signed)) {
          board_print_number((uint32_t)words);
          return 1;
        }
      }
    }
  }
#endif
  return 0;
}
