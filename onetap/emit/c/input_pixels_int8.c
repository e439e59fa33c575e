/* What pixels become: a table of 256 bytes for each channel up to the last one, which further channels share. */
typedef struct {
  const uint8_t* tables;
  uint16_t channels;
  uint8_t last;
} Input;

/* The caller's planes of pixels as rows of scaled pixels, with zeros for channels that fill a pixel's last word. */
static void read_input(const Step* step, const Memory* memory, int32_t y) {
  const Input* input = (const Input*)step->layer;
  const Value* out = step->output;
  /* Not read again behind every byte that is written. */
  const int32_t width = out->width, stride = out->channels, channels = input->channels;
  for (int32_t c = 0; c < stride; ++c) {
    uint8_t* to = row_of(out, memory, y) + c;
    if (c < channels) {
      const uint8_t* table = input->tables + 256 * (c < input->last ? c : input->last);
      const uint8_t* from = memory->in + (c * out->height + y) * width;
      for (int32_t x = 0; x < width; ++x) to[x * stride] = table[from[x]];
    } else {
      for (int32_t x = 0; x < width; ++x) to[x * stride] = 0;
    }
  }
}
