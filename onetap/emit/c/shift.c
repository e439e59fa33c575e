typedef struct {
  Window window;
  const uint8_t* codes; /* a position of the kernel for every channel */
  uint16_t channels;
} Shift;

/* Every channel moved by whole pixels; zeros come in. */
static void shift(const Step* step, const Memory* memory, int32_t y) {
  const Shift* layer = (const Shift*)step->layer;
  const Window* window = &layer->window;
  const Value *in = step->inputs[0], *out = step->output;
  element* to = row_of(out, memory, y);
  for (int32_t c = 0; c < layer->channels; ++c) {
    const int32_t code = code_at(layer->codes, c);
    const int32_t row = y - window->padding_h + code / window->kernel_w * window->dilation_h;
    const int32_t right = code % window->kernel_w * window->dilation_w - window->padding_w;
    const element* from = row >= 0 && row < in->height ? row_of(in, memory, row) + c : NULL;
    for (int32_t x = 0; x < out->width; ++x) {
      const int32_t inside = from != NULL && x + right >= 0 && x + right < in->width;
      to[x * out->channels + c] = inside ? from[(x + right) * in->channels] : (element)0;
    }
  }
}
