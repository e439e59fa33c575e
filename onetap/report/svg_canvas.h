// A picture as SVG: text without declaration or ids, so that it stands alone or inside an HTML page.
#pragma once

#include "onetap/report/canvas.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// For text and for attributes in double quotes. What XML cannot hold becomes U+FFFD.
std::string escape_xml(std::string_view utf8);

// Pictures of ours one below the other, as one.
std::string stacked_svg(std::string_view title, const std::vector<std::string>& pictures);

class SvgCanvas : public Canvas {
 public:
  SvgCanvas(double width, double height, std::string_view title);

  void rectangle(const Rectangle& box, Rgb fill, std::string_view tooltip = {}) override;
  void line(double x1, double y1, double x2, double y2, Rgb colour) override;
  void text(double x, double baseline, std::string_view utf8, const TextStyle& style) override;

  struct Stroke {
    Rgb colour;
    double width = 1;
    bool dashed = false;
  };
  // An outline in SVG's own words ("M1 2L3 4"), filled or not.
  void path(std::string_view d, const Stroke& stroke, std::optional<Rgb> fill, std::string_view tooltip = {});

  // The whole document.
  std::string finish() const { return finish_with(""); }
  // With elements of another picture.
  std::string finish_with(std::string_view elements) const { return svg_ + std::string(elements) + "</svg>\n"; }

 private:
  std::string svg_;
};

}  // namespace onetap
