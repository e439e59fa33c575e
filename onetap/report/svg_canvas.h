// A picture as SVG: text without declaration or ids, so that it stands alone or inside an HTML page.
#pragma once

#include "onetap/report/canvas.h"

#include <string>

namespace onetap {

// For text and for attributes in double quotes. What XML cannot hold becomes U+FFFD.
std::string escape_xml(std::string_view utf8);

class SvgCanvas : public Canvas {
 public:
  SvgCanvas(double width, double height, std::string_view title);

  void rectangle(const Rectangle& box, Rgb fill, std::string_view tooltip = {}) override;
  void line(double x1, double y1, double x2, double y2, Rgb colour) override;
  void text(double x, double baseline, std::string_view utf8, const TextStyle& style) override;

  // The whole document.
  std::string finish() const { return svg_ + "</svg>\n"; }

 private:
  std::string svg_;
};

}  // namespace onetap
