typedef struct {
  float scale; /* of a byte */
  uint16_t channels;
} Output;

/* Rows of pixels as the caller's planes. */
static void write_output(const Step* step, const Memory* memory, int32_t y) {
  const Output* output = (const Output*)step->layer;
  const Value* in = step->inputs[0];
  const uint8_t* from = row_of(in, memory, y);
  float* to = memory->out + y * in->width;
  for (int32_t x = 0; x < in->width; ++x) {
    for (int32_t c = 0; c < output->channels; ++c) {
      to[c * in->height * in->width + x] = (float)byte_value(from[c], in->is_signed) * output->scale;
    }
    from += in->channels;
  }
}
