#include "onetap/emit/c_input.h"

#include "onetap/base/fail.h"
#include "onetap/quant/pixel_bytes.h"

#include <algorithm>
#include <cmath>

namespace onetap {

const char* c_type(CInput input) {
  return input == CInput::kPixels ? "uint8_t" : "float";
}

int64_t c_type_bytes(CInput input) {
  return input == CInput::kPixels ? 1 : 4;
}

std::vector<uint8_t> c_pixel_tables(const PixelScale& pixels, const Int8Value& input, int64_t channels) {
  std::vector<PixelBytes> tables = pixel_bytes(pixels, input);
  tables.resize(pixel_channel(channels - 1) + 1);
  const bool are_equal = std::all_of(tables.begin(), tables.end(), [&](const auto& t) { return t == tables[0]; });
  if (are_equal) tables.resize(1);
  std::vector<uint8_t> bytes;
  for (const PixelBytes& table : tables) bytes.insert(bytes.end(), table.begin(), table.end());
  return bytes;
}

CPixelFactors c_pixel_factors(const PixelScale& pixels) {
  CPixelFactors factors;
  for (size_t c = 0; c < pixels.mean.size(); ++c) {
    const double mean = static_cast<double>(pixels.mean[c]), sd = static_cast<double>(pixels.sd[c]);
    factors.factor.push_back(static_cast<float>(1 / (255 * sd)));
    factors.offset.push_back(static_cast<float>(-mean / sd));
    if (!std::isfinite(factors.factor.back()) || !std::isfinite(factors.offset.back())) {
      fail_usage("[emit] expected 1 / sd and mean / sd of pixels that floats can hold, got mean {} and sd {}",
                 pixels.mean[c], pixels.sd[c]);
    }
  }
  return factors;
}

}  // namespace onetap
