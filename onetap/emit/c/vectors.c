/* Vectors of 16 bytes (MVE: Cortex-M55, M85) read whole words. */
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__)
#define VECTORS
#define WORD_ALIGNED __attribute__((aligned(4)))
#else
#define WORD_ALIGNED
#endif
