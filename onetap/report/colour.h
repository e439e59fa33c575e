// Colours of the pictures: a scale whose steps look even, and text that can be read on any of them.
#pragma once

#include <cstdint>
#include <string>

namespace onetap {

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;

  bool operator==(const Rgb& other) const { return r == other.r && g == other.g && b == other.b; }
  bool operator!=(const Rgb& other) const { return !(*this == other); }
};

// "#1a2b3c".
std::string hex(Rgb colour);

struct Theme {
  Rgb background, ink, muted, grid;

  static Theme light();
  static Theme dark();
};

// 0 is the colour nearest to the background, 1 the farthest: pale yellow over teal to indigo, or back on a dark page.
// The lightness (of Oklab) changes in even steps, so the order survives colour blindness and a grey printer.
Rgb heat_colour(double value, bool dark);

// Black or white, whichever contrasts more (WCAG 2) with what lies behind.
Rgb readable_on(Rgb behind);
double contrast(Rgb one, Rgb other);

}  // namespace onetap
