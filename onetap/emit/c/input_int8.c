typedef struct {
  float scale; /* of a byte */
  uint16_t channels;
} Input;

/* x / scale, rounded to the nearest, halves to even; 0 for a NaN. */
static int32_t quantize(float x, float scale) {
  const float value = x / scale;
  if (!(value > -127.0f)) return value <= -127.0f ? -127 : 0;
  if (value > 127.0f) return 127;
  const int32_t whole = (int32_t)value; /* towards 0 */
  const float rest = value - (float)whole;
  if (rest > 0.5f || (rest >= 0.5f && whole % 2 != 0)) return whole + 1;
  if (rest < -0.5f || (rest <= -0.5f && whole % 2 != 0)) return whole - 1;
  return whole;
}

/* The caller's planes as rows of pixels. */
static void read_input(const Step* step, const Memory* memory, int32_t y) {
  const Input* input = (const Input*)step->layer;
  const Value* out = step->output;
  const float* from = memory->in + y * out->width;
  uint8_t* to = row_of(out, memory, y);
  for (int32_t x = 0; x < out->width; ++x) {
    for (int32_t c = 0; c < out->channels; ++c) {
      const float value = c < input->channels ? from[c * out->height * out->width + x] : 0.0f;
      *to++ = (uint8_t)quantize(value, input->scale);
    }
  }
}
