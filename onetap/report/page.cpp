#include "onetap/report/page.h"

#include "onetap/base/fail.h"
#include "onetap/journal/run_files.h"
#include "onetap/report/page_data.h"
#include "onetap/report/page_files.h"

#include <system_error>
#include <utility>

namespace onetap {
namespace {

struct Insert {
  std::string_view mark;
  std::string_view text;
};

// Goes through the template once: a mark that happens to stand in inserted text is left alone.
std::string fill(std::string_view page, const std::vector<Insert>& inserts) {
  std::string filled;
  for (const Insert& insert : inserts) {
    const size_t at = page.find(insert.mark);
    if (at == std::string_view::npos) fail("[report] expected {} in the page's template, in order", insert.mark);
    filled += page.substr(0, at);
    filled += insert.text;
    page.remove_prefix(at + insert.mark.size());
  }
  filled += page;
  return filled;
}

}  // namespace

ReportRun read_report_run(const std::filesystem::path& run) {
  const RunFiles files(run);
  ReportRun report;
  report.label = run.string();
  report.recipe = files.read_config();
  report.graph = files.read_graph();
  std::error_code error;
  if (std::filesystem::exists(files.metrics(), error)) report.metrics = read_metrics(files.metrics());
  report.attention = read_attention(files.attention());
  return report;
}

std::string report_page(const std::vector<ReportRun>& runs) {
  const std::string data = page_data(runs);
  return fill(page_files::page_html(), {{"{{style.css}}", page_files::style_css()},
                                        {"{{data}}", data},
                                        {"{{dom.js}}", page_files::dom_js()},
                                        {"{{charts.js}}", page_files::charts_js()},
                                        {"{{sections.js}}", page_files::sections_js()},
                                        {"{{report.js}}", page_files::report_js()}});
}

}  // namespace onetap
