typedef struct {
  Window window;
  uint8_t is_max;
} Pool;

/* The largest or the mean value of a window. The mean counts zeros around the image, the maximum does not. */
static void pool(const Step* step, const Memory* memory, int32_t y) {
  const Pool* pool = (const Pool*)step->layer;
  const Window* window = &pool->window;
  const Value *in = step->inputs[0], *out = step->output;
  float* to = row_of(out, memory, y);
  for (int32_t x = 0; x < out->width; ++x) {
    for (int32_t c = 0; c < out->channels; ++c) {
      float sum = 0.0f, most = 0.0f;
      int32_t seen = 0;
      for (int32_t i = 0; i < window->kernel_h; ++i) {
        const int32_t row = y * window->stride_h - window->padding_h + i;
        if (row < 0 || row >= in->height) continue;
        const float* from = row_of(in, memory, row) + c;
        for (int32_t j = 0; j < window->kernel_w; ++j) {
          const int32_t column = x * window->stride_w - window->padding_w + j;
          if (column < 0 || column >= in->width) continue;
          const float pixel = from[column * in->channels];
          sum += pixel;
          if (!seen || pixel > most) most = pixel;
          seen = 1;
        }
      }
      *to++ = pool->is_max ? most : sum / (float)(window->kernel_h * window->kernel_w);
    }
  }
}
