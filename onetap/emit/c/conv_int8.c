#ifdef VECTORS
#include <arm_mve.h>
#define START(bias, start) start
#else
#define START(bias, start) bias
#endif
/* Weights that DSP instructions need in another order. */
#if defined(DSP) && !defined(VECTORS)
#define PACKED(packed, weights) packed
#else
#define PACKED(packed, weights) weights
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
  uint8_t is_usual;       /* has a bias, scales that all shift, and an addend or no left shift */
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
#define RESULTS 32 /* outputs that are finished together: an even number */

INLINE int32_t bias_of(const Conv* conv, int32_t d) {
  return ALL_BIASED || conv->bias != NULL ? conv->bias[d] * (1 << conv->bias_shift) : 0;
}

/* What becomes of the sums of outputs d to end - 1, two pixels each: their bias is added, and maybe another value, and
   they are scaled. */
INLINE void finish_any(const Conv* conv, const Target* target, int32_t d, int32_t end, const int32_t* sums) {
  const int32_t is_signed = target->is_signed, addend_signed = target->addend_signed;
  for (; d < end; ++d, sums += 2) {
    const Scale* scale = &conv->scales[conv->scale_of[d]];
    int32_t totals[2]; /* of both, before the addend of one might be overwritten: it may lie where the result does */
    for (int32_t pixel = 0; pixel < 2; ++pixel) {
      const uint8_t* addend = target->addend[pixel];
      totals[pixel] = (sums[pixel] + bias_of(conv, d)) * (1 << conv->left_shift);
      if (addend != NULL) totals[pixel] += byte_value(addend[d], addend_signed) * scale->addend;
    }
    for (int32_t pixel = 0; pixel < 2; ++pixel) {
      const int32_t scaled = requantize(totals[pixel], scale->multiplier, scale->shift_less_1 + 1);
      target->to[pixel][d] = clamp_byte(scaled, is_signed);
    }
  }
}

#if defined(DSP) && defined(__OPTIMIZE__) /* else there are too few registers */
#define FINISHES_USUAL
/* The same for scales with a shift; what is added is part of the sums. Scale.half is added to the high half of the
   product, and the last place is shifted out where the number is clamped. Signed bytes are 1 less until they have been
   clamped to -128, so that the least is -127. */
#define FINISH_USUAL(name, clamp)                                                                            \
  INLINE void name(const Conv* conv, const Target* target, int32_t d, int32_t end, const int32_t* sums,      \
                   int32_t bias_unit) {                                                                      \
    const uint8_t *scale_of = conv->scale_of + d, *scale_end = conv->scale_of + end;                         \
    const int16_t* bias = conv->bias + d;                                                                    \
    uint8_t *to0 = target->to[0] + d, *to1 = target->to[1] + d;                                              \
    register int32_t by __asm__("r2"), shift __asm__("r3"), half __asm__("r4"); /* in the order of LDM */    \
    int32_t x0, x1;                                                                                          \
    __asm__ volatile(                                                                                        \
        "1:\n\tldrb %[by], [%[scale_of]], #1\n\tldrsh %[half], [%[bias]], #2\n\t"                            \
        "ldrd %[x0], %[x1], [%[sums]], #8\n\tadd %[by], %[scales], %[by], lsl #4\n\t"                        \
        "mla %[x0], %[half], %[bias_unit], %[x0]\n\tmla %[x1], %[half], %[bias_unit], %[x1]\n\t"             \
        "ldm %[by], {%[by], %[shift], %[half]}\n\t"                                                          \
        "smmla %[x0], %[x0], %[by], %[half]\n\tsmmla %[x1], %[x1], %[by], %[half]\n\t"                       \
        "asr %[x0], %[x0], %[shift]\n\tasr %[x1], %[x1], %[shift]\n\t" clamp                                 \
        "cmp %[scale_of], %[scale_end]\n\tstrb %[x0], [%[to0]], #1\n\tstrb %[x1], [%[to1]], #1\n\tbne 1b"    \
        : [scale_of] "+r"(scale_of), [bias] "+r"(bias), [sums] "+r"(sums), [to0] "+r"(to0), [to1] "+r"(to1), \
          [x0] "=&r"(x0), [x1] "=&r"(x1), [half] "=&r"(half), [by] "=&r"(by), [shift] "=&r"(shift)           \
        : [scales] "r"(conv->scales), [bias_unit] "r"(bias_unit), [scale_end] "r"(scale_end)                 \
        : "cc", "memory");                                                                                   \
  }
FINISH_USUAL(finish_unsigned, "usat %[x0], #8, %[x0], asr #1\n\tusat %[x1], #8, %[x1], asr #1\n\t")
FINISH_USUAL(finish_signed,
             "ssat %[x0], #8, %[x0], asr #1\n\tssat %[x1], #8, %[x1], asr #1\n\tmov %[half], #-1\n\t"
             "qsub8 %[x0], %[x0], %[half]\n\tqsub8 %[x1], %[x1], %[half]\n\t")

/* Adds what is added beside the bias; the sums are shifted. */
INLINE void add_addend(const Conv* conv, const Target* target, int32_t d, int32_t end, int32_t* sums) {
  const uint8_t *addend0 = target->addend[0], *addend1 = target->addend[1], *scale_of = conv->scale_of;
  const Scale* scales = conv->scales;
  const int32_t left_shift = conv->left_shift, is_signed = target->addend_signed;
  for (; d < end; ++d, sums += 2) {
    const int32_t factor = scales[scale_of[d]].addend;
    sums[0] = sums[0] * (1 << left_shift) + byte_value(addend0[d], is_signed) * factor;
    sums[1] = sums[1] * (1 << left_shift) + byte_value(addend1[d], is_signed) * factor;
  }
}
#endif

APART void finish(const Conv* conv, const Target* target, int32_t d, int32_t end, int32_t* sums) {
  if (conv->dequantize == NULL) {
#ifdef FINISHES_USUAL
    if (ALL_USUAL || conv->is_usual) {
      int32_t bias_shift = conv->bias_shift;
      if (target->addend[0] != NULL) {
        add_addend(conv, target, d, end, sums);
        bias_shift += conv->left_shift;
      }
      const int32_t bias_unit = 1 << bias_shift; /* at most 30 */
      if (target->is_signed) {
        finish_signed(conv, target, d, end, sums, bias_unit);
      } else {
        finish_unsigned(conv, target, d, end, sums, bias_unit);
      }
      return;
    }
#endif
    finish_any(conv, target, d, end, sums);
    return;
  }
  for (; d < end; ++d, sums += 2) {
    const int32_t bias = bias_of(conv, d);
    target->out[0][d * target->plane] = (float)(sums[0] + bias) * conv->dequantize[d];
    target->out[1][d * target->plane] = (float)(sums[1] + bias) * conv->dequantize[d];
  }
}
#endif
