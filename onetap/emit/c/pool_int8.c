typedef struct {
  Window window;
  uint8_t is_max;
  uint8_t left_shift, shift; /* of the sum of a window */
  uint8_t gives_floats;      /* the caller's, or else bytes */
  int32_t multiplier;        /* of the sum of a window */
  float dequantize;          /* of the caller's floats */
  uint16_t channels;
} Pool;

/* The largest or the mean value of a window. The mean counts zeros around the image, the maximum does not. */
static void pool(const Step* step, const Memory* memory, int32_t y) {
  const Pool* pool = (const Pool*)step->layer;
  const Window* window = &pool->window;
  const Value *in = step->inputs[0], *out = step->output;
  uint8_t* to = row_of(out, memory, y);
  for (int32_t x = 0; x < out->width; ++x, to += out->channels) {
    for (int32_t c = 0; c < pool->channels; ++c) {
      int32_t sum = 0, most = in->is_signed ? -127 : 0;
      for (int32_t i = 0; i < window->kernel_h; ++i) {
        const int32_t row = y * window->stride_h - window->padding_h + i;
        if (row < 0 || row >= in->height) continue;
        const uint8_t* from = row_of(in, memory, row) + c;
        for (int32_t j = 0; j < window->kernel_w; ++j) {
          const int32_t column = x * window->stride_w - window->padding_w + j;
          if (column < 0 || column >= in->width) continue;
          const int32_t pixel = byte_value(from[column * in->channels], in->is_signed);
          sum += pixel;
          if (pixel > most) most = pixel;
        }
      }
      if (pool->gives_floats) {
        memory->out[(c * out->height + y) * out->width + x] = (float)sum * pool->dequantize;
      } else {
        to[c] =
            clamp_byte(pool->is_max ? most : requantize(sum * (1 << pool->left_shift), pool->multiplier, pool->shift),
                       out->is_signed);
      }
    }
  }
}
