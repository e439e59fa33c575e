// onetap report: one HTML page about one or several runs.
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/journal/run_files.h"
#include "onetap/report/page.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/bench_model.h"
#include "tools/onetap/console.h"
#include "tools/onetap/find_runs.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>

#include <memory>
#include <system_error>

namespace onetap::tool {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output;
  bool latency = false;
};

std::filesystem::path output_path(const ReportOptions& options) {
  if (!options.output.empty()) return options.output;
  const std::filesystem::path first = options.runs.front();
  std::error_code ignored;
  if (options.runs.size() == 1 && std::filesystem::is_directory(first, ignored)) return first / "report.html";
  return "report.html";
}

// Every argument that is no run stands for the runs in it: a sweep, or a folder of runs and other files. Without any it
// stays, for the error that it is.
std::vector<std::filesystem::path> expanded(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> runs;
  for (const std::string& argument : arguments) {
    const auto found = runs_below(argument);
    if (found.empty()) {
      runs.emplace_back(argument);
    } else {
      if (found.front() != argument)
        console().note(fmt::format("{}: {} run{}", argument, found.size(), found.size() == 1 ? "" : "s"));
      runs.insert(runs.end(), found.begin(), found.end());
    }
  }
  return runs;
}

// One image, one thread, all frozen networks in turns.
void measure_latency(std::vector<ReportRun>& runs) {
  std::vector<std::unique_ptr<BenchSetting>> settings;
  std::vector<std::unique_ptr<ModelBenchmark>> models;
  std::vector<std::optional<double>*> results;
  const auto add = [&](const std::filesystem::path& file, std::optional<double>& result) {
    try {
      const TapNet net = read_tap(file);
      settings.push_back(std::make_unique<BenchSetting>(random_images(net.graph, 1, 1)));
      models.push_back(
          std::make_unique<ModelBenchmark>(std::make_shared<const Model>(net, ModelOptions()), *settings.back(), 1));
      results.push_back(&result);
    } catch (const Error& problem) {
      console().warn(problem.what());
    }
  };
  for (ReportRun& run : runs) {
    if (run.file_bytes) add(RunFiles(run.label).model(), run.latency_ms);
    if (run.int8) add(RunFiles(run.label).int8_model(), run.int8->latency_ms);
  }
  std::vector<Benchmark*> turns;
  for (const auto& model : models) turns.push_back(model.get());
  if (turns.empty()) return console().warn("--latency: no run has a model.tap ('onetap freeze RUN' creates it)");
  const auto seconds = time_in_turns(turns, {});
  for (size_t i = 0; i < results.size(); ++i) *results[i] = 1e3 * quantiles(seconds[i]).median;
}

int run_report(const ReportOptions& options) {
  std::vector<ReportRun> runs;
  const std::vector<std::filesystem::path> found = expanded(options.runs);
  for (const std::filesystem::path& path : found) {
    try {
      runs.push_back(read_report_run(path));
    } catch (const Error& problem) {
      if (found.size() == 1) throw;
      console().warn(problem.what());
      continue;
    }
    for (const std::string& notice : runs.back().notices) console().warn(notice);
    for (const std::string& remark : runs.back().remarks) console().warn(remark);
  }
  if (runs.empty()) fail_data("[report] expected a run to show, got none in {}", join(options.runs, ", "));
  const std::filesystem::path path = output_path(options);
  check_output_file("report", path);
  if (options.latency) measure_latency(runs);
  write_file_atomic(path, report_page(runs));
  console().print(path.string());
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* verb = app.add_subcommand("report", "make an HTML page about runs: curves, heat maps, counts");
  verb->add_option("RUN", options->runs,
                   "run directories, finished or in progress; or folders that contain some, such as a sweep")
      ->required();
  verb->add_option("-o,--out", options->output,
                   "file to write (default: RUN/report.html for one argument, report.html here for several)")
      ->check(some_name())
      ->option_text("FILE");
  verb->add_flag("--latency", options->latency,
                 "time the model.tap and model-int8.tap of every frozen run on this CPU: one image, one thread, about "
                 "a second each");
  verb->footer(
      "Examples:\n"
      "  onetap report runs/first\n"
      "  onetap report runs/dense runs/sal -o compare.html\n"
      "  onetap report sweeps/temperature\n"
      "\nThe page is self-contained: it can be mailed, printed and opened on a phone. Its path is printed to\n"
      "standard output. A run in progress is shown up to its last record. Damaged files are named in\n"
      "warnings and left out; the exit code is 4 if no run is left to show.");
  verb->callback([options, &action] { action = [options] { return run_report(*options); }; });
}

}  // namespace onetap::tool
