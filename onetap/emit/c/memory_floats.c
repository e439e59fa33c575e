/* What the caller gave. */
typedef struct {
  const float* in;
  float* out;
  element* arena;
} Memory;
