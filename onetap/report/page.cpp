#include "onetap/report/page.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/journal/good_lines.h"
#include "onetap/journal/run_files.h"
#include "onetap/report/page_data.h"
#include "onetap/report/page_files.h"
#include "onetap/tap/tap_file.h"
#include "onetap/tap/test_fact.h"

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

// What `read` returns; nothing, and a notice, if it throws.
template <typename Read>
auto read_or_note(Read&& read, std::vector<std::string>& notices) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& problem) {
    notices.emplace_back(problem.what());
    return std::nullopt;
  }
}

// If a file that was made of the run is not from its last step.
void remark_on_step(const std::filesystem::path& path, const TapNet& net, ReportRun& run) {
  const MetricLine* last = last_test(run.metrics);
  if (last == nullptr) return;
  if (const auto text = other_step_text(path.string(), net, last->step)) run.remarks.push_back(*text);
}

ReportInt8 read_int8(const std::filesystem::path& path, ReportRun& run) {
  const TapNet net = read_tap(path);
  if (!net.is_int8()) fail_data("[report] expected an int8 network, got floats ({})", path.string());
  ReportInt8 int8;
  int8.bytes = std::filesystem::file_size(path);
  if (const auto tested = test_fact(net)) int8.accuracy = tested->accuracy;
  remark_on_step(path, net, run);
  return int8;
}

}  // namespace

ReportRun read_report_run(const std::filesystem::path& run) {
  const RunFiles files(run);
  if (!files.holds_run())
    fail_data("[report] expected a run directory with config.toml, or a folder with runs in it, got {}",
              named_place(run));
  ReportRun report;
  report.label = run.string();
  report.recipe = read_or_note([&] { return files.read_config(); }, report.notices);
  report.graph = read_or_note([&] { return files.read_graph(); }, report.notices);
  report.ended_early = files.ended_early();
  report.metrics = read_good_lines<MetricLine>(files.metrics(), report.notices);
  report.attention = read_good_lines<AttentionLine>(files.attention(), report.notices);
  std::error_code error;
  if (std::filesystem::is_regular_file(files.config(), error)) {
    report.provenance = recipe_provenance(read_file(files.config(), 1u << 20));
  }
  if (std::filesystem::exists(files.classes(), error)) {
    constexpr uint64_t kMostBytes = 256u << 20;
    const std::string path = files.classes().string();
    report.classes =
        read_or_note([&] { return ClassScores::parse(read_file(files.classes(), kMostBytes), path); }, report.notices);
  }
  const uint64_t bytes = std::filesystem::file_size(files.model(), error);
  if (!error) {
    report.file_bytes = bytes;
    try {
      remark_on_step(files.model(), read_tap(files.model()), report);
    } catch (const Error&) {
      // Only its length is shown.
    }
  }
  if (std::filesystem::exists(files.int8_model(), error)) {
    report.int8 = read_or_note([&] { return read_int8(files.int8_model(), report); }, report.notices);
  }
  if (!report.recipe && !report.graph && report.metrics.empty() && report.attention.empty()) {
    fail_data("[report] expected a run, got nothing that can be read ({}: {})", run.string(), report.notices.front());
  }
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
