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
