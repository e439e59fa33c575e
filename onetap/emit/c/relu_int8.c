static void relu(const Step* step, const Memory* memory, int32_t y) {
  const Value *in = step->inputs[0], *out = step->output;
  const uint8_t* from = row_of(in, memory, y);
  uint8_t* to = row_of(out, memory, y);
  for (int32_t i = 0; i < out->width * out->channels; ++i) {
    to[i] = clamp_byte(byte_value(from[i], in->is_signed), out->is_signed);
  }
}
