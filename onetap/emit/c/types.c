/* A value between two steps: rows of pixels, the channels of a pixel together. */
typedef struct {
  uint32_t offset;        /* elements from the arena's begin to row 0 */
  uint16_t height, width; /* a vector is one pixel */
  uint16_t channels;      /* elements from a pixel to the next */
  uint16_t rows;          /* rows that are kept: row y lies where row y % rows does */
  uint8_t is_signed;      /* bytes of -127 to 127, not of 0 to 255 */
} Value;

/* What the caller gave. */
typedef struct {
  const float* in;
  float* out;
  element* arena;
} Memory;

/* A step computes one row of its output at a time, from the first to the last. */
typedef struct Step {
  void (*row)(const struct Step* step, const Memory* memory, int32_t y);
  const void* layer;          /* what the step needs beside its values */
  const Value* const* inputs; /* a convolution may have a second one: it is added to the result */
  int32_t input_count;
  const Value* output;
} Step;

static element* row_of(const Value* value, const Memory* memory, int32_t y) {
  return memory->arena + value->offset + (uint32_t)(y % value->rows) * value->width * value->channels;
}
