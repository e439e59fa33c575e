typedef struct {
  uint8_t stride_h, stride_w;
  uint16_t front;  /* channels of zeros before those of the input */
  uint16_t inputs; /* channels of the input */
} Subsample;

/* Every stride-th pixel, with channels of zeros in front and behind. */
static void subsample(const Step* step, const Memory* memory, int32_t y) {
  const Subsample* layer = (const Subsample*)step->layer;
  const Value *in = step->inputs[0], *out = step->output;
  const element* from = row_of(in, memory, y * layer->stride_h);
  element* to = row_of(out, memory, y);
  for (int32_t x = 0; x < out->width; ++x) {
    for (int32_t c = 0; c < out->channels; ++c) {
      const int32_t source = c - layer->front;
      to[c] = source >= 0 && source < layer->inputs ? from[source] : (element)0;
    }
    from += layer->stride_w * in->channels;
    to += out->channels;
  }
}
