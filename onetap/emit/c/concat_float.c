/* The channels of several values, one after the other: how many of each. */
static void concat(const Step* step, const Memory* memory, int32_t y) {
  const uint16_t* channels = (const uint16_t*)step->layer;
  const Value* out = step->output;
  int32_t front = 0;
  for (int32_t k = 0; k < step->input_count; ++k) {
    const Value* in = step->inputs[k];
    const float* from = row_of(in, memory, y);
    float* to = row_of(out, memory, y) + front;
    for (int32_t x = 0; x < out->width; ++x) {
      for (int32_t c = 0; c < channels[k]; ++c) to[c] = from[c];
      from += in->channels;
      to += out->channels;
    }
    front += channels[k];
  }
}
