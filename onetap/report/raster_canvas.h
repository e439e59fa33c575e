// A picture as pixels, with the bitmap font of font.h: no library needed.
#pragma once

#include "onetap/report/canvas.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace onetap {

// Bytes in planes, as the module data has them in Image: all of red, then green, then blue, rows from the top.
struct Raster {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;

  Rgb at(int64_t y, int64_t x) const;
};

class RasterCanvas : public Canvas {
 public:
  // `scale` pixels per unit.
  RasterCanvas(double width, double height, int scale);

  void rectangle(const Rectangle& box, Rgb fill, std::string_view tooltip = {}) override;
  void line(double x1, double y1, double x2, double y2, Rgb colour) override;
  void text(double x, double baseline, std::string_view utf8, const TextStyle& style) override;

  Raster finish() { return std::move(raster_); }

 private:
  int64_t pixel(double units) const;
  // Corners in pixels, the second one outside; what lies beyond the picture is cut off.
  void fill(int64_t left, int64_t top, int64_t right, int64_t bottom, Rgb colour);

  Raster raster_;
  int scale_;
};

}  // namespace onetap
