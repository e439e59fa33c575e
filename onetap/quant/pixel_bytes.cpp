#include "onetap/quant/pixel_bytes.h"

#include "onetap/base/quantized.h"

namespace onetap {

std::vector<PixelBytes> pixel_bytes(const PixelScale& pixels, const Int8Value& input) {
  std::vector<PixelBytes> tables(pixels.mean.size());
  for (size_t channel = 0; channel < tables.size(); ++channel) {
    for (int value = 0; value < 256; ++value) {
      const float x = scaled_pixel(pixels, static_cast<int64_t>(channel), value);
      tables[channel][static_cast<size_t>(value)] =
          static_cast<uint8_t>(quantized(x, input.scale, input.least(), input.most()));
    }
  }
  return tables;
}

}  // namespace onetap
