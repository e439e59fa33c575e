// What the caller of generated C gives: scaled floats, or pixels as a camera has them.
#pragma once

#include "onetap/quant/int8_plan.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <vector>

namespace onetap {

// kPixels: bytes of 0 to 255, which the code scales by the network's mean and sd.
enum class CInput { kFloats, kPixels };

// "float", "uint8_t"
const char* c_type(CInput input);
int64_t c_type_bytes(CInput input);

// What pixels become in the input of an int8 network: 256 bytes for each of the first channels, or for all of them
// where they are the same.
std::vector<uint8_t> c_pixel_tables(const PixelScale& pixels, const Int8Value& input, int64_t channels);

// Of a network of floats: (value / 255 - mean) / sd as value * factor + offset. kUsage if floats cannot hold them.
struct CPixelFactors {
  std::vector<float> factor, offset;  // of the PixelScale's channels
};
CPixelFactors c_pixel_factors(const PixelScale& pixels);

}  // namespace onetap
