// A small bitmap font for pictures made of pixels: printable ASCII and an ellipsis, drawn for onetap.
#pragma once

#include <string_view>

namespace onetap {

struct Glyph {
  static constexpr int kWidth = 5;
  static constexpr int kAscent = 7;   // rows above the baseline
  static constexpr int kHeight = 9;   // two more for descenders
  static constexpr int kAdvance = 6;  // from one glyph to the next

  // Rows from the top, '#' for ink, separated by '/'; rows left out at the end are empty.
  std::string_view rows;

  bool ink(int row, int column) const;
};

// An empty box for a character that the font does not have.
Glyph glyph_of(char32_t character);

}  // namespace onetap
