/* The caller's planes as rows of pixels. */
static void read_input(const Step* step, const Memory* memory, int32_t y) {
  const Value* out = step->output;
  const float* from = memory->in + y * out->width;
  float* to = row_of(out, memory, y);
  for (int32_t x = 0; x < out->width; ++x) {
    for (int32_t c = 0; c < out->channels; ++c) *to++ = from[c * out->height * out->width + x];
  }
}
