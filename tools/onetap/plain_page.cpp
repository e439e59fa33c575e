#include "tools/onetap/plain_page.h"

#include "onetap/report/svg_canvas.h"

#include <fmt/format.h>

namespace onetap::tool {
namespace {

constexpr const char* kHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n";

// Of its own: the report page's style is for charts that its script draws, and would repaint our figure.
constexpr const char* kStyle =
    "body { margin: 0 auto; max-width: 1180px; padding: 1.5rem 1.25rem 3rem; background: #fbfbf9; color: #17212b;\n"
    "  font: 15px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }\n"
    "h1 { margin: 0; font-size: 1.6rem; line-height: 1.2; }\nh2 { font-size: 1.2rem; margin: 1.8rem 0 0.6rem; }\n"
    "a { color: #0b6a8f; }\ncode { overflow-wrap: anywhere; }\nul { padding-left: 1.2rem; overflow-wrap: anywhere; }\n"
    ".scroll { overflow: auto; max-height: 60rem; border: 1px solid #dde2e6; border-radius: 8px; background: #fff; }\n"
    "table { width: 100%; border-collapse: collapse; font-size: 0.86rem; }\n"
    "th, td { padding: 0.45rem 0.7rem; text-align: left; white-space: nowrap; border-bottom: 1px solid #eaedf0; }\n"
    "th { color: #52606d; }\n.number { text-align: right; }\n"
    ".figure { overflow: auto; border: 1px solid #dde2e6; border-radius: 8px; background: #fff; }\n"
    ".figure svg { display: block; min-width: 28rem; max-width: 100%; height: auto; }\n"
    ".figures { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }\n";

}  // namespace

std::string page_start(const std::string& title, const std::string& command) {
  return fmt::format(
      "{}<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n"
      "<header><h1>{}</h1><p><code>{}</code></p></header>\n<main>\n",
      kHead, escape_xml(title), kStyle, escape_xml(title), escape_xml(command));
}

std::string page_section(const std::string& title, const std::string& html) {
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", escape_xml(title), html);
}

std::string page_table(const Table& table) {
  return fmt::format("<div class=\"scroll\">{}</div>", table.html());
}

std::string page_figure(const std::string& svg) {
  return fmt::format("<div class=\"figure\">{}</div>", svg);
}

std::string page_list(const std::vector<std::string>& texts) {
  std::string html = "<ul>\n";
  for (const std::string& text : texts) html += fmt::format("<li>{}</li>\n", escape_xml(text));
  return html + "</ul>";
}

std::string page_link(const std::string& target, const std::string& text) {
  return fmt::format("<a href=\"{}\">{}</a>", escape_xml(target), escape_xml(text));
}

std::string page_end() {
  return "</main>\n</body>\n</html>\n";
}

}  // namespace onetap::tool
