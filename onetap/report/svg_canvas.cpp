#include "onetap/report/svg_canvas.h"

#include "onetap/base/text.h"
#include "onetap/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace onetap {
namespace {

// Two decimals at most, none where they would be zeros.
std::string decimal(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

// A number that our own writer has put into the first element.
double attribute(std::string_view svg, std::string_view name) {
  const std::string mark = fmt::format(" {}=\"", name);
  const size_t at = svg.find(mark);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = svg.substr(at + mark.size());
  return parse_double(rest.substr(0, rest.find('"'))).value_or(0);
}

bool allowed_in_xml(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0xFFFE && c != 0xFFFF);
}

}  // namespace

std::string escape_xml(std::string_view utf8) {
  std::u32string clean = decode_utf8(utf8);
  for (char32_t& c : clean) {
    if (!allowed_in_xml(c)) c = 0xFFFD;
  }
  std::string escaped;
  for (const char c : encode_utf8(clean)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string stacked_svg(std::string_view title, const std::vector<std::string>& pictures) {
  constexpr std::string_view kOpening = "<svg";
  double width = 0, height = 0;
  std::string inner;
  for (const std::string& picture : pictures) {
    inner += fmt::format("<svg y=\"{}\"{}", decimal(height), picture.substr(kOpening.size()));
    width = std::max(width, attribute(picture, "width"));
    height += attribute(picture, "height");
  }
  SvgCanvas outer(width, height, title);
  return outer.finish_with(inner);
}

SvgCanvas::SvgCanvas(double width, double height, std::string_view title)
    : svg_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0}\" height=\"{1}\" "
                       "viewBox=\"0 0 {0} {1}\" font-family=\"system-ui, sans-serif\">\n<title>{2}</title>\n",
                       decimal(width), decimal(height), escape_xml(title))) {}

void SvgCanvas::rectangle(const Rectangle& box, Rgb fill, std::string_view tooltip) {
  svg_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" shape-rendering=\"crispEdges\"",
                      decimal(box.x), decimal(box.y), decimal(box.width), decimal(box.height), hex(fill));
  svg_ += tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escape_xml(tooltip));
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, Rgb colour) {
  svg_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\"/>\n", decimal(x1), decimal(y1),
                      decimal(x2), decimal(y2), hex(colour));
}

void SvgCanvas::path(std::string_view d, const Stroke& stroke, std::optional<Rgb> fill, std::string_view tooltip) {
  svg_ +=
      fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{} fill=\"{}\"", escape_xml(d), hex(stroke.colour),
                  decimal(stroke.width), stroke.dashed ? " stroke-dasharray=\"4 3\"" : "", fill ? hex(*fill) : "none");
  svg_ += tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></path>\n", escape_xml(tooltip));
}

void SvgCanvas::text(double x, double baseline, std::string_view utf8, const TextStyle& style) {
  const char* anchor = style.anchor == TextStyle::Anchor::kMiddle ? " text-anchor=\"middle\""
                       : style.anchor == TextStyle::Anchor::kEnd  ? " text-anchor=\"end\""
                                                                  : "";
  // The pointer looks through the label at the cell, which has the tooltip.
  svg_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\"{}{} fill=\"{}\" pointer-events=\"none\">{}</text>\n",
                      decimal(x), decimal(baseline), decimal(style.size), anchor,
                      style.bold ? " font-weight=\"bold\"" : "", hex(style.colour), escape_xml(utf8));
}

}  // namespace onetap
