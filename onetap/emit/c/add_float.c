/* The sum of several values. */
static void add(const Step* step, const Memory* memory, int32_t y) {
  const uint8_t* relu = (const uint8_t*)step->layer;
  const Value* out = step->output;
  float* to = row_of(out, memory, y);
  for (int32_t i = 0; i < out->width * out->channels; ++i) {
    float sum = 0.0f;
    for (int32_t k = 0; k < step->input_count; ++k) sum += row_of(step->inputs[k], memory, y)[i];
    to[i] = *relu && sum < 0.0f ? 0.0f : sum;
  }
}
