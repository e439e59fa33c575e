// onetap train: a run from a recipe, and its continuation.
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/base/version.h"
#include "onetap/count/count.h"
#include "onetap/data/source.h"
#include "onetap/journal/metrics.h"
#include "onetap/train/resolve.h"
#include "onetap/train/trainer.h"
#include "tools/onetap/console.h"
#include "tools/onetap/recipe_flags.h"
#include "tools/onetap/signals.h"
#include "tools/onetap/verbs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <unistd.h>

namespace onetap::tool {
namespace {

struct TrainOptions {
  std::string recipe_path;
  RecipeFlags flags;
  std::string out;
  bool resume = false;
  bool dry_run = false;
  bool json = false;
};

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return std::string(trim(line.substr(line.find(':') + 1)));
  }
  return "unknown";
}

// The words of this process's command line.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), {}};
  std::replace(words.begin(), words.end(), '\0', ' ');
  return std::string(trim(words));
}

Provenance make_provenance() {
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return {{"onetap", ONETAP_VERSION},
          {"libtorch", TORCH_VERSION},
          {"host", host},
          {"cpu", cpu_name()},
          {"command", command_line()},
          {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
}

// Where more workers may help.
std::string wait_text(double share) {
  constexpr double kWorthSaying = 0.05;
  return share < kWorthSaying ? "" : fmt::format(" ({:.0f} % waiting for data)", 100 * share);
}

std::string step_text(const StepReport& r) {
  return fmt::format("epoch {}/{}  step {}/{}  loss {:.3f}  acc {}  lr {:.3g}  T {:.3g}  {:.0f} img/s{}  ETA {}",
                     r.epoch, r.epochs, r.step_in_epoch, r.steps_per_epoch, r.loss, percent_text(r.accuracy), r.lr,
                     r.temperature, r.img_per_s, wait_text(r.data_wait), duration_text(r.eta_s));
}

std::string epoch_text(const EpochReport& r, bool has_sal) {
  const std::string test = has_sal ? fmt::format("test soft {} hard {}", percent_text(r.test.acc_soft),
                                                 percent_text(r.test.acc_hard.value_or(0)))
                                   : fmt::format("test {}", percent_text(r.test.acc_soft));
  return fmt::format("epoch {}/{}  loss {:.4f}  train {}  {}  lr {:.3g}{}  {:.0f} img/s{}  {}", r.epoch, r.epochs,
                     r.train.loss, percent_text(r.train.acc_soft), test, r.train.lr,
                     has_sal ? fmt::format("  T {:.3g}", r.train.temperature) : "", r.train.img_per_s,
                     wait_text(r.train.data_wait.value_or(0)), duration_text(r.test.wall_s));
}

TrainEvents console_events(bool has_sal) {
  TrainEvents events;
  events.on_step = [](const StepReport& report) { console().progress(step_text(report)); };
  events.on_epoch = [has_sal](const EpochReport& report) { console().note(epoch_text(report, has_sal)); };
  events.on_test_images = [](int64_t done, int64_t total) {
    console().progress(fmt::format("testing {}/{}", done, total));
  };
  events.on_notice = [](const std::string& text) { console().note(text); };
  return events;
}

void describe(const Recipe& recipe, const DataSource& source, const Graph& graph) {
  const NetworkCount dense = count_network(graph, CountRules::kPlain);
  const NetworkCount kept = count_network(graph, CountRules::kPaper);
  console().note(fmt::format("{}: {} training and {} test images, {} classes", source.spec, source.train->size(),
                             source.test->size(), source.classes.size()));
  console().note(fmt::format("{}, method {}: {} parameters in training, {} in the finished network", graph.name(),
                             recipe.method, with_thousands(dense.params), with_thousands(kept.params)));
}

void print_result(const TrainOptions& options, const RunFiles& files, bool has_sal) {
  const auto lines = read_metrics(files.metrics());
  const auto last = std::find_if(lines.rbegin(), lines.rend(), [](const MetricLine& l) { return l.split == "test"; });
  if (last == lines.rend()) return;
  if (options.json) {
    nlohmann::json object = parse_json(last->json());
    object["run"] = files.root.string();
    for (const MetricLine& line : lines) {
      if (line.data_wait) object["data_wait"] = *line.data_wait;  // of the last epoch
    }
    std::cout << json_text(object) << '\n';
  } else if (has_sal) {
    std::cout << fmt::format("{}: soft {}, hard {}\n", files.root.string(), percent_text(last->acc_soft),
                             percent_text(last->acc_hard.value_or(0)));
  } else {
    std::cout << fmt::format("{}: {}\n", files.root.string(), percent_text(last->acc_soft));
  }
}

int run_train(const TrainOptions& options) {
  if (options.out.empty() && !options.dry_run) fail_usage("[train] expected --out RUN, the directory for this run");
  const RecipeRequest request = read_recipe_request(options.recipe_path, options.flags);
  const RunFiles files(options.out);
  const bool resuming = options.resume && files.holds_run();

  Recipe recipe = resuming ? merge_for_resume(files.read_config(), request, "run", options.out) : request.recipe;
  check_recipe(recipe);
  parse_device(recipe.device);
  const DataSource source = open_data(recipe.data);
  if (!resuming) recipe = resolve_recipe(recipe, source);
  const Graph graph =
      resuming ? files.read_graph()
               : recipe_network(recipe, static_cast<int64_t>(source.classes.size()), recipe.image_size.value_or(0));
  check_network(graph, source);
  if (!resuming) check_init(recipe, graph);
  if (options.dry_run) {
    describe(recipe, source, graph);
    std::cout << recipe_text(recipe);
    return 0;
  }
  const RunDirectory directory = resuming ? RunDirectory::resume(options.out)
                                          : RunDirectory::create(options.out, recipe, graph, make_provenance());
  describe(recipe, source, graph);
  install_signal_handlers();
  const bool has_sal = has_sal_layers(graph);
  const TrainOutcome outcome = train(directory, recipe, source, console_events(has_sal), stop_requested);
  console().clear_progress();
  if (outcome == TrainOutcome::kInterrupted) {
    console().note(fmt::format("stopped; 'onetap train --out {} --resume' goes on", options.out));
    return signal_exit_code();
  }
  print_result(options, files, has_sal);
  return 0;
}

}  // namespace

void require_training(const char*) {}

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "train a network, or go on with a run");
  verb->add_option("RECIPE", options->recipe_path, "a recipe in TOML; flags override it")->check(CLI::ExistingFile);
  verb->add_option("-o,--out", options->out, "directory of the run")->option_text("RUN");
  verb->add_flag("--resume", options->resume, "go on from the newest checkpoint in RUN; start if there is none");
  verb->add_flag("--dry-run", options->dry_run, "check everything, print the resolved recipe, train nothing");
  verb->add_flag("--json", options->json, "print the result as JSON");
  options->flags.add(*verb);
  verb->footer(
      "Examples:\n"
      "  onetap train --data shapes --arch resnet8 --epochs 10 --out runs/first\n"
      "  onetap train recipes/cifar10-sanet.toml --data cifar10:DIR --out runs/sanet --resume\n"
      "  onetap train --arch my.net --method sal --layers 'layer2.*,layer3.*' --out runs/mine\n"
      "\nA run that was killed, interrupted or ran out of disk goes on with the same command and --resume;\n"
      "on a CPU its results are bit for bit those of a run that was never interrupted.");
  verb->callback([options, &action] { action = [options] { return run_train(*options); }; });
}

}  // namespace onetap::tool
