/* Rows of pixels as a vector of planes: so many channels. */
static void flatten(const Step* step, const Memory* memory, int32_t y) {
  const uint16_t* channels = (const uint16_t*)step->layer;
  const Value* in = step->inputs[0];
  element* to = row_of(step->output, memory, y);
  for (int32_t row = 0; row < in->height; ++row) {
    const element* from = row_of(in, memory, row);
    for (int32_t x = 0; x < in->width; ++x) {
      for (int32_t c = 0; c < *channels; ++c) to[(c * in->height + row) * in->width + x] = from[c];
      from += in->channels;
    }
  }
}
