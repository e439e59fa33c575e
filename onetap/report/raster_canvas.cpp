#include "onetap/report/raster_canvas.h"

#include "onetap/base/utf8.h"
#include "onetap/report/font.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

// A font's size is about ten rows of our glyphs: seven of capitals, two of descenders, one between lines.
constexpr double kRowsPerSize = 10;

}  // namespace

Rgb Raster::at(int64_t y, int64_t x) const {
  const auto plane = static_cast<size_t>(height * width);
  const auto offset = static_cast<size_t>(y * width + x);
  return {pixels.at(offset), pixels.at(offset + plane), pixels.at(offset + 2 * plane)};
}

RasterCanvas::RasterCanvas(double width, double height, int scale) : scale_(scale) {
  raster_.width = pixel(width);
  raster_.height = pixel(height);
  raster_.pixels.resize(static_cast<size_t>(3 * raster_.width * raster_.height));
}

int64_t RasterCanvas::pixel(double units) const {
  return std::llround(units * scale_);
}

void RasterCanvas::fill(int64_t left, int64_t top, int64_t right, int64_t bottom, Rgb colour) {
  left = std::max<int64_t>(left, 0);
  top = std::max<int64_t>(top, 0);
  right = std::min(right, raster_.width);
  bottom = std::min(bottom, raster_.height);
  if (left >= right) return;
  const int64_t plane = raster_.height * raster_.width;
  const uint8_t bytes[3] = {colour.r, colour.g, colour.b};
  for (int64_t y = top; y < bottom; ++y) {
    uint8_t* row = raster_.pixels.data() + y * raster_.width;
    for (int64_t c = 0; c < 3; ++c) std::fill(row + c * plane + left, row + c * plane + right, bytes[c]);
  }
}

void RasterCanvas::rectangle(const Rectangle& box, Rgb colour, std::string_view /*tooltip*/) {
  fill(pixel(box.x), pixel(box.y), pixel(box.x + box.width), pixel(box.y + box.height), colour);
}

void RasterCanvas::line(double x1, double y1, double x2, double y2, Rgb colour) {
  const double length = std::max(std::abs(x2 - x1), std::abs(y2 - y1)) * scale_;
  const auto steps = static_cast<int64_t>(std::ceil(length));
  for (int64_t i = 0; i <= steps; ++i) {
    const double t = steps == 0 ? 0 : static_cast<double>(i) / static_cast<double>(steps);
    const int64_t left = pixel(x1 + t * (x2 - x1) - 0.5), top = pixel(y1 + t * (y2 - y1) - 0.5);
    fill(left, top, left + scale_, top + scale_, colour);
  }
}

void RasterCanvas::text(double x, double baseline, std::string_view utf8, const TextStyle& style) {
  const std::u32string characters = decode_utf8(utf8);
  if (characters.empty()) return;
  // Whole pixels per dot keep the glyphs even; rounding down keeps them inside the room that was planned.
  const auto dot = std::max<int64_t>(1, static_cast<int64_t>(style.size * scale_ / kRowsPerSize));
  const int64_t width = (static_cast<int64_t>(characters.size()) * Glyph::kAdvance - 1) * dot;
  int64_t left = pixel(x);
  if (style.anchor == TextStyle::Anchor::kMiddle) left = pixel(x - static_cast<double>(width) / scale_ / 2);
  if (style.anchor == TextStyle::Anchor::kEnd) left -= width;
  const int64_t top = pixel(baseline) - Glyph::kAscent * dot;
  const int64_t weight = style.bold ? std::max<int64_t>(1, dot / 2) : 0;
  for (const char32_t character : characters) {
    const Glyph glyph = glyph_of(character);
    for (int row = 0; row < Glyph::kHeight; ++row) {
      for (int column = 0; column < Glyph::kWidth; ++column) {
        if (!glyph.ink(row, column)) continue;
        const int64_t at = left + column * dot;
        fill(at, top + row * dot, at + dot + weight, top + (row + 1) * dot, style.colour);
      }
    }
    left += Glyph::kAdvance * dot;
  }
}

}  // namespace onetap
