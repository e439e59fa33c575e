/* Weights are read as whole words by vectors of 16 bytes (MVE: Cortex-M55, M85) and by DSP instructions. */
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__)
#define VECTORS
#endif
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
#define DSP
#endif
#if defined(VECTORS) || defined(DSP)
#define WORD_ALIGNED __attribute__((aligned(4)))
#else
#define WORD_ALIGNED
#endif
