// The orientation that a camera writes into a JPEG file: photographs of phones are stored as the sensor lies, with a
// note of how to turn them.
#pragma once

#include <cstdint>
#include <string_view>

namespace onetap {

// Tag 274 of the first Exif segment (APP1), 1 to 8; 1, upright, where there is none or it cannot be read: what is
// wrong there is no reason to refuse the pixels.
int jpeg_orientation(std::string_view bytes);

// Where the pixels of the upright image lie in a stored one of height x width. Exif 2.32 (4.6.4) defines orientation 6,
// for example, as "row 0 is the right side, column 0 the top".
struct Upright {
  Upright(int orientation, int64_t stored_height, int64_t stored_width);

  // Whether rows or columns of the stored image run against those of the upright one, be they its rows or its columns.
  bool rows_reversed, columns_reversed;
  int64_t height, width;                 // of the upright image
  int64_t first, row_step, column_step;  // in pixels of the stored image
};

}  // namespace onetap
