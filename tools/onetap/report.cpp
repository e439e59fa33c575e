// onetap report: one HTML page about one or several runs.
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/report/page.h"
#include "tools/onetap/console.h"
#include "tools/onetap/verbs.h"

#include <memory>

namespace onetap::tool {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output;
};

std::filesystem::path output_path(const ReportOptions& options) {
  if (!options.output.empty()) return options.output;
  if (options.runs.size() == 1) return std::filesystem::path(options.runs.front()) / "report.html";
  return "report.html";
}

int run_report(const ReportOptions& options) {
  std::vector<ReportRun> runs;
  for (const std::string& path : options.runs) {
    try {
      runs.push_back(read_report_run(path));
    } catch (const Error& problem) {
      if (options.runs.size() == 1) throw;
      console().warn(problem.what());
      continue;
    }
    for (const std::string& notice : runs.back().notices) console().warn(notice);
  }
  if (runs.empty()) fail_data("[report] expected a run to show, got none in {} directories", options.runs.size());
  const std::filesystem::path path = output_path(options);
  write_file_atomic(path, report_page(runs));
  console().print(path.string());
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* verb = app.add_subcommand("report", "one HTML page about runs: curves, heat maps, counts");
  verb->add_option("RUN", options->runs, "run directories, finished or going on")->required();
  verb->add_option("-o,--out", options->output,
                   "file to write (default: RUN/report.html for one run, report.html here for several)")
      ->option_text("FILE");
  verb->footer(
      "Examples:\n"
      "  onetap report runs/first\n"
      "  onetap report runs/dense runs/sal -o compare.html\n"
      "\nThe page needs no network and no other file: mail it, print it, open it on a phone. Its path goes to\n"
      "standard output. A run that is still going on is shown as far as it has come. What is damaged is named in\n"
      "warnings and left out; the exit code is 4 if no run is left to show.");
  verb->callback([options, &action] { action = [options] { return run_report(*options); }; });
}

}  // namespace onetap::tool
