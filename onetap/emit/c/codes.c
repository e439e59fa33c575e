/* The i-th position of a list, CODE_BITS bits each. */
static int32_t code_at(const uint8_t* codes, int32_t i) {
#if CODE_BITS == 4
  return (codes[i >> 1] >> (4 * (i & 1))) & 15;
#else
  return codes[i];
#endif
}
