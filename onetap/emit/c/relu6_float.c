static void relu6(const Step* step, const Memory* memory, int32_t y) {
  const Value* out = step->output;
  const float* from = row_of(step->inputs[0], memory, y);
  float* to = row_of(out, memory, y);
  for (int32_t i = 0; i < out->width * out->channels; ++i) {
    to[i] = from[i] < 0.0f ? 0.0f : from[i] > 6.0f ? 6.0f : from[i];
  }
}
