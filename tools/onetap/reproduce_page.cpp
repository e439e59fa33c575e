#include "onetap/report/svg_canvas.h"
#include "tools/onetap/reproduce_results.h"

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
    ".figure svg { display: block; max-width: 100%; height: auto; }\n";

std::string link(const std::string& target, const std::string& text) {
  return fmt::format("<a href=\"{}\">{}</a>", escape_xml(target), escape_xml(text));
}

}  // namespace

std::string results_page(const ExperimentResults& results, const std::string& figure, bool links_runs) {
  const Experiment& experiment = results.experiment();
  std::string page = kHead;
  page +=
      fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n", escape_xml(experiment.title), kStyle);
  page += fmt::format("<header><h1>{}</h1><p><code>onetap reproduce {}</code></p></header>\n<main>\n",
                      escape_xml(experiment.title), escape_xml(experiment.name));
  for (const auto& [data, table] : results.tables()) {
    page +=
        fmt::format("<section><h2>{}</h2>\n<div class=\"scroll\">{}</div></section>\n", escape_xml(data), table.html());
  }
  page += fmt::format("<section><h2>Figure</h2>\n<div class=\"figure\">{}</div></section>\n", figure);
  page += "<section><h2>Notes</h2>\n<ul>\n";
  for (const std::string& remark : results.remarks()) page += fmt::format("<li>{}</li>\n", escape_xml(remark));
  page += "</ul></section>\n<section><h2>Files</h2>\n<ul>\n";
  for (const char* file : {"results.md", "results.csv", "results.json", "figure.svg"}) {
    page += fmt::format("<li>{}</li>\n", link(file, file));
  }
  if (links_runs)
    page += fmt::format("<li>{}: curves, heat maps and counts of all runs</li>\n", link("runs.html", "runs.html"));
  for (const RowResult& row : results.rows()) {
    for (const RunPlace& run : row.runs)
      page += fmt::format("<li>{}</li>\n", link("../runs/" + run.name + "/", run.name));
  }
  return page + "</ul></section>\n</main>\n</body>\n</html>\n";
}

}  // namespace onetap::tool
