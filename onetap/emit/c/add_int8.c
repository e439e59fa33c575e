/* The sum of several values, each times a factor / 2^16. */
static void add(const Step* step, const Memory* memory, int32_t y) {
  const int32_t* factors = (const int32_t*)step->layer;
  const Value* out = step->output;
  uint8_t* to = row_of(out, memory, y);
  for (int32_t i = 0; i < out->width * out->channels; ++i) {
    int32_t sum = 1 << 15;
    for (int32_t k = 0; k < step->input_count; ++k) {
      const Value* in = step->inputs[k];
      sum += byte_value(row_of(in, memory, y)[i], in->is_signed) * factors[k];
    }
    to[i] = clamp_byte(sum >> 16, out->is_signed);
  }
}
