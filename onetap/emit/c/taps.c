/* The window of a convolution or a pool. */
typedef struct {
  uint8_t kernel_h, kernel_w;
  uint8_t stride_h, stride_w;
  uint8_t padding_h, padding_w;
  uint8_t dilation_h, dilation_w;
} Window;

/* Where an output pixel's taps lie: elements from the arena's begin to the pixel that each position of the kernel
   reads. What lies outside of the image is read from the zeros at the arena's begin. Two pixels side by side are
   computed together. */
typedef struct {
  int32_t place[POSITIONS][2];
  int32_t x;     /* of the first pixel */
  int32_t valid; /* the places hold for other pixels inside of the row, moved by as many pixels */
} Taps;

static void place_taps(Taps* taps, const Window* window, const Value* in, int32_t y, int32_t x, int32_t pixel) {
  int32_t(*place)[2] = taps->place;
  for (int32_t i = 0; i < window->kernel_h; ++i) {
    const int32_t row = y * window->stride_h - window->padding_h + i * window->dilation_h;
    const int32_t inside = row >= 0 && row < in->height;
    const int32_t begin = inside ? (int32_t)in->offset + row % in->rows * in->width * in->channels : 0;
    int32_t column = x * window->stride_w - window->padding_w;
    for (int32_t j = 0; j < window->kernel_w; ++j) {
      (*place++)[pixel] = inside && column >= 0 && column < in->width ? begin + column * in->channels : 0;
      column += window->dilation_w;
    }
  }
}

/* Makes `taps` ready for pixels x and x + 1 of row y; returns the arena's begin, moved to x. The pixel behind the last
   of a row is the last once more. */
static const element* taps_at(Taps* taps, const Window* window, const Value* in, const Value* out, const Memory* memory,
                              int32_t y, int32_t x) {
  const int32_t first = x * window->stride_w - window->padding_w;
  const int32_t last = first + window->stride_w + (window->kernel_w - 1) * window->dilation_w;
  const int32_t inside = first >= 0 && last < in->width && x + 1 < out->width;
  if (inside && taps->valid) return memory->arena + (x - taps->x) * window->stride_w * in->channels;
  place_taps(taps, window, in, y, x, 0);
  place_taps(taps, window, in, y, x + 1 < out->width ? x + 1 : x, 1);
  taps->x = x;
  if (inside) {
    const int32_t top = y * window->stride_h - window->padding_h;
    taps->valid = top >= 0 && top + (window->kernel_h - 1) * window->dilation_h < in->height;
  }
  return memory->arena;
}
