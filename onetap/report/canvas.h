// What a picture is drawn on. Units are pixels of the SVG; x grows to the right, y downwards.
#pragma once

#include "onetap/report/colour.h"

#include <string_view>

namespace onetap {

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
};

struct TextStyle {
  enum class Anchor { kStart, kMiddle, kEnd };

  double size = 10;
  Rgb colour;
  Anchor anchor = Anchor::kStart;
  bool bold = false;
};

class Canvas {
 public:
  // No more than this much of the size per character, in any font we expect: room is planned with it.
  static constexpr double kCharacterWidth = 0.62;
  static constexpr double kBoldCharacterWidth = 0.68;
  // From the middle of a line of capitals or digits down to its baseline, as a part of the size.
  static constexpr double kHalfHeight = 0.35;

  virtual ~Canvas() = default;

  // `tooltip` is shown where a canvas can, when a pointer rests on the rectangle.
  virtual void rectangle(const Rectangle& box, Rgb fill, std::string_view tooltip = {}) = 0;
  virtual void line(double x1, double y1, double x2, double y2, Rgb colour) = 0;
  virtual void text(double x, double baseline, std::string_view utf8, const TextStyle& style) = 0;
};

}  // namespace onetap
