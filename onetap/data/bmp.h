// Windows bitmaps (.bmp): 1, 4, 8, 16, 24 and 32 bits a pixel, without compression or with bit fields.
#pragma once

#include "onetap/data/dataset.h"

#include <string_view>

namespace onetap {

bool looks_like_bmp(std::string_view bytes);

// Height and width from the header. kData naming `label` if it is damaged or of a kind that is not read (run-length
// coded, JPEG or PNG inside).
struct BmpSize {
  int64_t height = 0, width = 0;
};
BmpSize bmp_size(std::string_view bytes, std::string_view label);

// RGB planes, the first row at the top; alpha is dropped. kData as above, and if pixels are missing. The caller limits
// the size.
void decode_bmp(std::string_view bytes, std::string_view label, Image& image);

}  // namespace onetap
