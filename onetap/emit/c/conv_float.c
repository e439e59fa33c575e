/* A convolution. An output's weights come in blocks of inputs that have their positions in common:
   [output][block][tap][input of the block], without those of empty taps. */
typedef struct {
  Window window;
  uint16_t outputs, inputs, groups; /* inputs of a group */
  uint16_t block_inputs, blocks;
  uint16_t share_outputs; /* outputs that have their positions in common */
  uint16_t code_bytes;    /* of the positions of an output */
  uint8_t taps;           /* positions of a block */
  uint8_t relu;
  const float* weights;
  const float* bias; /* of every output, or none */
  const uint8_t*
      codes; /* [outputs / share_outputs][block][tap], each output's from a whole byte; none: all positions, in order */
} Conv;

static void conv(const Step* step, const Memory* memory, int32_t y) {
  const Conv* conv = (const Conv*)step->layer;
  const Value *in = step->inputs[0], *out = step->output;
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  float* to = row_of(out, memory, y);
  const float* addend = step->input_count > 1 ? row_of(step->inputs[1], memory, y) : NULL;
  Taps taps;
  taps.valid = 0;
  for (int32_t x = 0; x < out->width; x += 2) {
    const float* base = taps_at(&taps, &conv->window, in, out, memory, y, x);
    const float* w = conv->weights;
    for (int32_t d = 0; d < conv->outputs; ++d) {
      const int32_t begin = d / (conv->outputs / conv->groups) * conv->inputs;
      const uint8_t* codes = conv->codes != NULL ? conv->codes + d / conv->share_outputs * conv->code_bytes : NULL;
      int32_t code = 0;
      float sum0 = conv->bias != NULL ? conv->bias[d] : 0.0f;
      float sum1 = sum0;
      for (int32_t c = 0; c < conv->inputs; c += conv->block_inputs) {
        const int32_t rest = conv->inputs - c;
        const int32_t count = rest < conv->block_inputs ? rest : conv->block_inputs;
        for (int32_t t = 0; t < conv->taps; ++t, ++code) {
          const int32_t position = codes != NULL ? code_at(codes, code) : t;
          if (position >= positions) continue; /* empty */
          const float* x0 = base + taps.place[position][0] + begin + c;
          const float* x1 = base + taps.place[position][1] + begin + c;
          for (int32_t i = 0; i < count; ++i) {
            sum0 += *w * x0[i];
            sum1 += *w++ * x1[i];
          }
        }
      }
      const int32_t at = x * conv->outputs + d;
      if (addend != NULL) {
        sum0 += addend[at];
        if (x + 1 < out->width) sum1 += addend[at + conv->outputs];
      }
      to[at] = conv->relu && sum0 < 0.0f ? 0.0f : sum0;
      if (x + 1 < out->width) to[at + conv->outputs] = conv->relu && sum1 < 0.0f ? 0.0f : sum1;
    }
  }
}
