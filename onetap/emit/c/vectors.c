/* Define ONETAP_PLAIN_C, in both sources, for compilers that have too few registers left for DSP instructions
   (-ffixed-r9, -frwpi). */
#ifndef ONETAP_PLAIN_C
/* Weights are read as whole words by vectors of 16 bytes (MVE: Cortex-M55, M85) and by DSP instructions. */
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)
#define VECTORS
#endif
/* Of Thumb-2: ARM's own encodings restrict registers. The lowest byte of a word is taken to be the first. */
#if defined(__ARM_FEATURE_SIMD32) && defined(__thumb2__) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)
#define DSP
#endif
#endif
#if defined(VECTORS) || defined(DSP)
#define WORD_ALIGNED __attribute__((aligned(4)))
#else
#define WORD_ALIGNED
#endif
