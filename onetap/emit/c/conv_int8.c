#ifdef VECTORS
#include <arm_mve.h>
#define START(bias, start) start
#else
#define START(bias, start) bias
#endif

/* A convolution. An output's weights come in blocks of inputs that have their positions in common, without those of
   empty taps. */
typedef struct {
  Window window;
  uint16_t outputs, inputs, groups; /* inputs of a group */
  uint16_t block_inputs, blocks;
  uint16_t share_outputs; /* outputs that have their positions in common */
  uint16_t code_bytes;    /* of the positions of an output */
  uint8_t taps;           /* positions of a block */
  uint8_t bias_shift;     /* bias << bias_shift is added */
  uint8_t left_shift;     /* of the sum, before another value is added or it is scaled */
  const int8_t* weights;
#ifdef VECTORS
  const int32_t* start; /* what the sum of every output starts from, or none */
#else
  const int16_t* bias; /* of every output, or none */
#endif
  const uint8_t*
      codes; /* [outputs / share_outputs][block][tap], each output's from a whole byte; none: all positions, in order */
  const Scale* scales;     /* those that occur, */
  const uint8_t* scale_of; /* and which of them each output has */
  const float* dequantize; /* the caller's floats, or none: bytes */
} Conv;

/* Where the results of two pixels side by side go. The pixel behind the last of a row is the last once more. */
typedef struct {
  uint8_t *row, *to[2];
  const uint8_t *addend_row, *addend[2]; /* none: NULL */
  int32_t addend_signed, is_signed, channels;
  float *out_row, *out[2]; /* the caller's floats */
  int32_t plane, last;
} Target;

static void start_row(Target* target, const Step* step, const Memory* memory, int32_t y) {
  const Value *out = step->output, *addend = step->input_count > 1 ? step->inputs[1] : NULL;
  target->row = row_of(out, memory, y);
  target->addend_row = addend != NULL ? row_of(addend, memory, y) : NULL;
  target->addend[0] = target->addend[1] = NULL;
  target->addend_signed = addend != NULL && addend->is_signed;
  target->is_signed = out->is_signed;
  target->channels = out->channels;
  target->out_row = memory->out + y * out->width;
  target->plane = out->height * out->width;
  target->last = out->width - 1;
}

static void move_to(Target* target, int32_t x) {
  const int32_t next = x < target->last ? x + 1 : x;
  target->to[0] = target->row + x * target->channels;
  target->to[1] = target->row + next * target->channels;
  target->out[0] = target->out_row + x;
  target->out[1] = target->out_row + next;
  if (target->addend_row != NULL) {
    target->addend[0] = target->addend_row + x * target->channels;
    target->addend[1] = target->addend_row + next * target->channels;
  }
}

/* Functions with constant arguments are compiled for each of them. */
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline, unused))
#else
#define INLINE static inline
#endif

/* A function of its own: it needs all registers. */
#if defined(__GNUC__)
#define APART static __attribute__((noinline))
#else
#define APART static
#endif

/* Sums come as [output][pixel], or as [pixel][4 outputs] where there are vectors. */
#ifdef VECTORS
#define PIXEL 4
#else
#define PIXEL 1
#endif

#ifndef VECTORS
#define RESULTS 16 /* outputs that are finished together: an even number */

#ifdef DSP
/* Scaled and clamped. The high half of the product, shifted: what falls out last is one half, and is added. */
#define SCALED_BYTE(name, clamp)                                              \
  INLINE int32_t name(int32_t x, int32_t multiplier, int32_t shift) {         \
    int32_t y;                                                                \
    __asm__("smmul %0, %1, %2\n\tasrs %0, %0, %3\n\tadc %0, %0, #0\n\t" clamp \
            : "=&r"(y)                                                        \
            : "r"(x), "r"(multiplier), "r"(shift)                             \
            : "cc");                                                          \
    return y;                                                                 \
  }
SCALED_BYTE(scaled_unsigned, "usat %0, #8, %0")
SCALED_BYTE(scaled_signed, "ssat %0, #8, %0")

INLINE uint8_t scaled_byte(int32_t x, int32_t multiplier, int32_t shift, int32_t is_signed) {
  if (shift == 0) return clamp_byte(requantize(x, multiplier, 0), is_signed);
  if (!is_signed) return (uint8_t)scaled_unsigned(x, multiplier, shift);
  x = scaled_signed(x, multiplier, shift);
  return (uint8_t)(x < -127 ? -127 : x);
}
#else
INLINE uint8_t scaled_byte(int32_t x, int32_t multiplier, int32_t shift, int32_t is_signed) {
  return clamp_byte(requantize(x, multiplier, shift), is_signed);
}
#endif

/* What becomes of the sums of outputs d to end - 1, two pixels each. */
INLINE void finish_as(const Conv* conv, const Target* target, int32_t d, int32_t end, const int32_t* sums,
                      int32_t is_signed, int32_t has_addend) {
  /* Copies: what is stored in bytes might be anything, to a compiler. */
  uint8_t *to0 = target->to[0], *to1 = target->to[1];
  const uint8_t *addend0 = target->addend[0], *addend1 = target->addend[1], *scale_of = conv->scale_of;
  const Scale* scales = conv->scales;
  const int32_t left_shift = conv->left_shift, addend_signed = target->addend_signed;
  for (; d < end; ++d, sums += 2) {
    const Scale* scale = &scales[scale_of[d]];
    const int32_t multiplier = scale->multiplier, shift = scale->shift;
    int32_t sum0 = sums[0] * (1 << left_shift), sum1 = sums[1] * (1 << left_shift);
    if (has_addend) {
      const int32_t factor = scale->addend;
      sum0 += byte_value(addend0[d], addend_signed) * factor;
      sum1 += byte_value(addend1[d], addend_signed) * factor;
    }
    to0[d] = scaled_byte(sum0, multiplier, shift, is_signed);
    to1[d] = scaled_byte(sum1, multiplier, shift, is_signed);
  }
}

static void finish(const Conv* conv, const Target* target, int32_t d, int32_t end, const int32_t* sums) {
  if (conv->dequantize == NULL) {
    if (target->is_signed) {
      finish_as(conv, target, d, end, sums, 1, target->addend[0] != NULL);
    } else if (target->addend[0] != NULL) {
      finish_as(conv, target, d, end, sums, 0, 1);
    } else {
      finish_as(conv, target, d, end, sums, 0, 0);
    }
    return;
  }
  for (; d < end; ++d, sums += 2) {
    target->out[0][d * target->plane] = (float)sums[0] * conv->dequantize[d];
    target->out[1][d * target->plane] = (float)sums[1] * conv->dequantize[d];
  }
}
#endif
