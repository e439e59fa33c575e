/* Numbers are scaled by multiplier / 2^(32 + shift), and rounded to the nearest, halves up. */
typedef struct {
  int32_t multiplier;
  int32_t shift_less_1;
  int32_t half;   /* 1 << shift_less_1, or its negative for signed bytes: for DSP instructions */
  int32_t addend; /* the factor of what is added to a convolution's sum */
} Scale;

/* Shifting a negative number to the right must keep its sign, as every compiler for these machines does. */
typedef char shifts_keep_the_sign[(-1 >> 1) == -1 ? 1 : -1];

static inline int32_t requantize(int32_t x, int32_t multiplier, int32_t shift) {
  const uint32_t high = ((uint32_t)1 << shift) >> 1, low = (uint32_t)(shift == 0) << 31; /* one half */
  return (int32_t)(((int64_t)x * multiplier + (int64_t)((uint64_t)high << 32 | low)) >> 32) >> shift;
}
