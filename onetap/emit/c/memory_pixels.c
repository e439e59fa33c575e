/* What the caller gave. */
typedef struct {
  const uint8_t* in; /* pixels */
  float* out;
  element* arena;
} Memory;
