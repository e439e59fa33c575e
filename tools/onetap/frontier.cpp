// onetap frontier: accuracy of networks against what they cost on this machine.
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/data/source.h"
#include "tools/onetap/console.h"
#include "tools/onetap/frontier_results.h"
#include "tools/onetap/memory_option.h"
#include "tools/onetap/number_range.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/verbs.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

// "x.html" names the page; the other files are in the directory "x" beside it.
FrontierOptions resolved(FrontierOptions options) {
  const fs::path out = options.out;
  if (out.extension() != ".html" || out.stem().empty()) return options;
  options.page = options.out;
  options.out = fs::path(out).replace_extension().string();
  return options;
}

int run_frontier(const FrontierOptions& given) {
  const FrontierOptions options = resolved(given);
  check_output_place("frontier", options.out);
  std::error_code ignored;
  if (const fs::path page = options.page_place(); fs::is_directory(page, ignored)) {
    fail_usage("[frontier] expected a file for the page, got the folder {}", page.string());
  }
  if (RunFiles(options.out).holds_run()) {
    fail_usage("[frontier] expected a directory for the results, got a run: {}", options.out);
  }
  check_csv(options);
  for (const std::string& spec : options.data) parse_data_spec(spec);
  int interrupted_by = 0;
  std::vector<FrontierPoint> points = measure_points(options, interrupted_by);
  if (interrupted_by != 0) {
    console().note("stopped; the same command reuses the files that are frozen so far");
    return 128 + interrupted_by;
  }
  if (options.mean_seeds) points = mean_over_seeds(points);
  const FrontierResults results(std::move(points), options);
  results.write();
  if (options.json) {
    std::cout << json_text(results.json(), 2) << '\n';
  } else {
    std::cout << results.text() << '\n';
    console().print(options.page_place().string());
  }
  return 0;
}

}  // namespace

void add_frontier(CLI::App& app, Action& action) {
  auto options = std::make_shared<FrontierOptions>();
  CLI::App* verb =
      app.add_subcommand("frontier", "compare accuracy with milliseconds, bytes, MACs and memory of many networks");
  verb->add_option("DIR", options->arguments,
                   "runs, .tap files, and directories that contain them: of a sweep, of 'reproduce', of models")
      ->required();
  verb->add_option(
          "--data", options->data,
          "test the frozen files on this set: cifar10[:DIR], cifar100[:DIR], folder:DIR, shapes; once for each "
          "(default: the run's own; needed for a .tap without a run)")
      ->allow_extra_args(false)
      ->check(offered(data_words()))
      ->option_text("TEXT");
  verb->add_flag("--no-eval", options->no_eval, "do not test: use the last hard accuracy recorded by the runs");
  verb->add_flag("--mean-seeds", options->mean_seeds, "one point for runs that differ only in their seed");
  verb->add_option("-o,--out", options->out,
                   "directory for the results; or NAME.html for the page, with the other results in the directory NAME")
      ->check(some_name())
      ->option_text("DIR|FILE [frontier]");
  verb->add_option("--csv", options->csv, "also write the points as CSV to this file")
      ->check(some_name())
      ->option_text("FILE");
  auto* against =
      verb->add_option("--against", options->against, "onnxruntime: also time dense networks with ONNX Runtime");
  against->delimiter(',')->allow_extra_args(false)->check(CLI::IsMember({"onnxruntime"}))->option_text("NAME");
  verb->add_option(
          "--images", options->images,
          "training images that ONNX Runtime calibrates int8 networks with, spread over the set, as 'quantize' "
          "takes them")
      ->check(CLI::Range(1, 1 << 30))
      ->needs(against)
      ->option_text("N [512]");
  verb->add_option("--threads", options->threads, "CPU threads of the timing")
      ->check(CLI::Range(1, 1024))
      ->option_text("N [1]");
  verb->add_option("--seconds", options->seconds, "time to measure each network")
      ->check(number_from(0.01, 3600))
      ->option_text("S [1]");
  add_memory_option(*verb, options->memory_limit);
  verb->add_option("--program", options->program, "freeze runs by this program instead of onetap itself")
      ->option_text("PATH");
  verb->add_flag("--json", options->json, "print the results as JSON");
  verb->footer(
      "Examples:\n"
      "  onetap frontier sweeps/dense sweeps/share4 -o frontier.html --csv points.csv\n"
      "  onetap frontier reproduced --data cifar10:DIR --against onnxruntime\n"
      "  onetap frontier models --data cifar10:DIR --data cifar100:DIR\n"
      "  onetap frontier runs --no-eval --mean-seeds --json\n"
      "\nOne point for each run or file. Each kind (method and sharing) has its Pareto front; a table says what each\n"
      "kind costs at the accuracy of every dense network. All networks are timed in turns within one run. A run "
      "without\n"
      "a model.tap is frozen into DIR/models. What cannot be used is left out with a warning; the exit code is 4 if\n"
      "nothing is left. Writes index.html, frontier.md, frontier.csv, equal-accuracy.csv, frontier.json and figures.");
  verb->callback([options, &action] { action = [options] { return run_frontier(*options); }; });
}

}  // namespace onetap::tool
