// Pixels as the bytes of an int8 network's input.
#pragma once

#include "onetap/quant/int8_plan.h"
#include "onetap/tap/tap_net.h"

#include <array>
#include <cstdint>
#include <vector>

namespace onetap {

using PixelBytes = std::array<uint8_t, 256>;  // by the value of a pixel

// What scaled_pixel() gives as bytes of `input` (those of -127 to 127 as two's complement): a table for each
// pixel_channel().
std::vector<PixelBytes> pixel_bytes(const PixelScale& pixels, const Int8Value& input);

}  // namespace onetap
