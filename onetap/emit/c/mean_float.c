/* The mean of all pixels. */
static void mean(const Step* step, const Memory* memory, int32_t y) {
  const Value* in = step->inputs[0];
  float* to = row_of(step->output, memory, y);
  for (int32_t c = 0; c < in->channels; ++c) {
    float sum = 0.0f;
    for (int32_t row = 0; row < in->height; ++row) {
      const float* from = row_of(in, memory, row) + c;
      for (int32_t x = 0; x < in->width; ++x) sum += from[x * in->channels];
    }
    to[c] = sum / (float)(in->height * in->width);
  }
}
