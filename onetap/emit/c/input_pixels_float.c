/* A pixel becomes value * factor + offset, by its channel; channels after the third are scaled as the third. */
typedef struct {
  float factor[3], offset[3];
} Input;

/* The caller's planes of pixels as rows of scaled pixels. */
static void read_input(const Step* step, const Memory* memory, int32_t y) {
  const Input* input = (const Input*)step->layer;
  const Value* out = step->output;
  for (int32_t c = 0; c < out->channels; ++c) {
    const float factor = input->factor[c < 2 ? c : 2], offset = input->offset[c < 2 ? c : 2];
    const uint8_t* from = memory->in + (c * out->height + y) * out->width;
    float* to = row_of(out, memory, y) + c;
    for (int32_t x = 0; x < out->width; ++x) to[x * out->channels] = (float)from[x] * factor + offset;
  }
}
