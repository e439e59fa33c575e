typedef struct {
  int32_t multiplier; /* of the sum of all pixels */
  uint8_t left_shift, shift;
  uint8_t gives_floats; /* the caller's, or else bytes */
  float dequantize;     /* of the caller's floats */
  uint16_t channels;
} Mean;

/* The mean of all pixels. */
static void mean(const Step* step, const Memory* memory, int32_t y) {
  const Mean* mean = (const Mean*)step->layer;
  const Value *in = step->inputs[0], *out = step->output;
  uint8_t* to = row_of(out, memory, y);
  for (int32_t c = 0; c < mean->channels; ++c) {
    int32_t sum = 0;
    for (int32_t row = 0; row < in->height; ++row) {
      const uint8_t* from = row_of(in, memory, row) + c;
      for (int32_t x = 0; x < in->width; ++x) sum += byte_value(from[x * in->channels], in->is_signed);
    }
    if (mean->gives_floats) {
      memory->out[c] = (float)sum * mean->dequantize;
    } else {
      to[c] = clamp_byte(requantize(sum * (1 << mean->left_shift), mean->multiplier, mean->shift), out->is_signed);
    }
  }
}
