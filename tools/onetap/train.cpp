// onetap train: a run from a recipe, and its continuation.
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/base/version.h"
#include "onetap/count/count.h"
#include "onetap/data/source.h"
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/journal/metrics.h"
#include "onetap/ranks/rank_group.h"
#include "onetap/train/init.h"
#include "onetap/train/rank_share.h"
#include "onetap/train/resolve.h"
#include "onetap/train/teacher.h"
#include "onetap/train/trainer.h"
#include "tools/onetap/console.h"
#include "tools/onetap/opened_data.h"
#include "tools/onetap/recipe_flags.h"
#include "tools/onetap/shift_table.h"
#include "tools/onetap/signals.h"
#include "tools/onetap/verbs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
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

std::string epoch_text(const EpochReport& r, bool has_soft) {
  const std::string test = has_soft ? fmt::format("test soft {} hard {}", percent_text(r.test.acc_soft),
                                                  percent_text(r.test.acc_hard.value_or(0)))
                                    : fmt::format("test {}", percent_text(r.test.acc_soft));
  return fmt::format("epoch {}/{}  loss {:.4f}  train {}  {}  lr {:.3g}{}  {:.0f} img/s{}  {}", r.epoch, r.epochs,
                     r.train.loss, percent_text(r.train.acc_soft), test, r.train.lr,
                     has_soft ? fmt::format("  T {:.3g}", r.train.temperature) : "", r.train.img_per_s,
                     wait_text(r.train.data_wait.value_or(0)), duration_text(r.test.wall_s));
}

TrainEvents console_events(bool has_soft) {
  TrainEvents events;
  events.on_step = [](const StepReport& report) { console().progress(step_text(report)); };
  events.on_epoch = [has_soft](const EpochReport& report) { console().note(epoch_text(report, has_soft)); };
  events.on_test_images = [](int64_t done, int64_t total) {
    console().progress(fmt::format("testing {}/{}", done, total));
  };
  events.on_notice = [](const std::string& text) { console().note(text); };
  return events;
}

void describe(const Recipe& recipe, const DataSource& source, const Graph& graph) {
  warn_of_skipped(source);
  const NetworkCount dense = count_network(graph, CountRules::kPlain);
  const NetworkCount kept = count_network(graph, CountRules::kPaper);
  console().note(fmt::format("{}: {} training and {} test images, {} classes", source.spec, source.train->size(),
                             source.test->size(), source.classes.size()));
  console().note(fmt::format("{}, method {}: {} parameters in training, {} in the finished network", graph.name(),
                             recipe.method, with_thousands(dense.params), with_thousands(kept.params)));
}

void print_result(const TrainOptions& options, const RunFiles& files, bool has_soft) {
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
  } else if (has_soft) {
    console().print(fmt::format("{}: soft {}, hard {}", files.root.string(), percent_text(last->acc_soft),
                                percent_text(last->acc_hard.value_or(0))));
  } else {
    console().print(fmt::format("{}: {}", files.root.string(), percent_text(last->acc_soft)));
  }
}

// The recipe and the network of rank 0 for the others; each takes a device of the kind that rank 0 has.
void share_run(RankGroup& ranks, Recipe& recipe, const Graph& graph) {
  Recipe shared = recipe;
  if (shared.device == "auto") shared.device = parse_device(shared.device).is_cuda() ? "cuda" : "cpu";
  ranks.share(recipe_text(shared));
  ranks.share(network_text(graph));
  recipe.device = rank_device(shared.device, ranks.place().local_rank);
}

// A rank other than 0.
int run_along(RankGroup& ranks) {
  Recipe recipe;
  apply_recipe_text(recipe, ranks.share(""), "the recipe of rank 0");
  const Graph graph = parse_network(ranks.share(""));
  recipe.device = rank_device(recipe.device, ranks.place().local_rank);
  const DataSource source = open_data(recipe.data);
  install_signal_handlers(/*speak=*/false);
  const TrainOutcome outcome = train_along(ranks, recipe, graph, source, stop_requested);
  return outcome == TrainOutcome::kInterrupted ? signal_exit_code() : 0;
}

// One process alone, or rank 0.
int run_train(const TrainOptions& options, RankGroup* ranks) {
  if (options.out.empty() && !options.dry_run) fail_usage("[train] expected --out RUN, the directory for this run");
  const RecipeRequest request = read_recipe_request(options.recipe_path, options.flags);
  const RunFiles files(options.out);
  const bool resuming = options.resume && files.holds_run();

  Recipe recipe = resuming ? merge_for_resume(files.read_config(), request, "run", options.out) : request.recipe;
  check_recipe(recipe);
  parse_device(recipe.device);
  if (resuming && request.keys.count("precision") > 0) check_precision(recipe);
  const DataSource source = open_data(recipe.data);
  if (!resuming) recipe = resolve_recipe(recipe, source, ranks != nullptr ? ranks->place().local_size : 1);
  Graph graph =
      resuming ? files.read_graph()
               : recipe_network(recipe, static_cast<int64_t>(source.classes.size()), recipe.image_size.value_or(0));
  check_network(graph, source);
  if (!resuming) {
    apply_shift_table(recipe, graph);
    check_init(recipe, graph);
    if (!recipe.teacher.empty()) load_teacher(recipe, graph, source, {});
  }
  RankShare(ranks).check_batches(recipe, source.train->size());
  if (options.dry_run) {
    describe(recipe, source, graph);
    std::cout << recipe_text(recipe);
    return 0;
  }
  const RunDirectory directory = resuming ? RunDirectory::resume(options.out)
                                          : RunDirectory::create(options.out, recipe, graph, make_provenance());
  describe(recipe, source, graph);
  if (ranks != nullptr) {
    if (ranks->size() > 1) console().note(fmt::format("{} ranks, each with its part of every batch", ranks->size()));
    share_run(*ranks, recipe, graph);
  }
  install_signal_handlers();
  const bool has_soft = has_soft_form(graph);
  const TrainOutcome outcome = train(directory, recipe, source, console_events(has_soft), stop_requested, ranks);
  console().clear_progress();
  if (outcome == TrainOutcome::kInterrupted) {
    console().note(fmt::format("stopped; 'onetap train --out {} --resume' goes on", options.out));
    return signal_exit_code();
  }
  print_result(options, files, has_soft);
  return 0;
}

std::chrono::seconds rank_timeout() {
  constexpr int64_t kUsual = 300;
  const char* text = std::getenv("ONETAP_RANK_TIMEOUT");
  const auto seconds = text == nullptr ? std::optional<int64_t>(kUsual) : parse_int(text);
  if (!seconds || *seconds < 1) fail_usage("[ranks] expected ONETAP_RANK_TIMEOUT in seconds, got '{}'", text);
  return std::chrono::seconds(*seconds);
}

int run_as_launched(const TrainOptions& options) {
  const RankPlace place = rank_place();
  if (!place.launched || options.dry_run) return run_train(options, nullptr);
  const auto ranks = meet_ranks(place, rank_timeout());
  try {
    const int code = ranks->leads() ? run_train(options, ranks.get()) : run_along(*ranks);
    ranks->any(false);  // nobody leaves while another still has to hear from it
    return code;
  } catch (const Error& problem) {
    ranks->leave(problem.kind(), problem.what());
    throw;
  } catch (const std::exception& problem) {
    ranks->leave(ErrorKind::kFailure, problem.what());
    throw;
  }
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
      "  onetap launch -n 2 -- train recipes/demo.toml --out runs/two    (also torchrun --no-python, srun, mpirun)\n"
      "\nA run that was killed, interrupted or ran out of disk goes on with the same command and --resume;\n"
      "on a CPU its results are bit for bit those of a run that was never interrupted.");
  verb->callback([options, &action] { action = [options] { return run_as_launched(*options); }; });
}

}  // namespace onetap::tool
