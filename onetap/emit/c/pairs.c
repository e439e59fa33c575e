/* Four weights each of outputs a and b, of words that are listed. DSP instructions read 16 bits: a weight of a + 256
   times one of b. */
#if defined(DSP) && !defined(VECTORS)
#define PAIR(a0, a1, a2, a3, b0, b1, b2, b3) a0, b0 - (a0 < 0), a2, b2 - (a2 < 0), a1, b1 - (a1 < 0), a3, b3 - (a3 < 0)
#else
#define PAIR(a0, a1, a2, a3, b0, b1, b2, b3) a0, a1, a2, a3, b0, b1, b2, b3
#endif
