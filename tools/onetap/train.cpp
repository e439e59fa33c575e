// onetap train: a run from a recipe, and its continuation.
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/base/version.h"
#include "onetap/batches/batch_stream.h"
#include "onetap/count/count.h"
#include "onetap/data/source.h"
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/journal/metrics.h"
#include "onetap/ranks/rank_group.h"
#include "onetap/recipe/schedule.h"
#include "onetap/train/frozen_layers.h"
#include "onetap/train/init.h"
#include "onetap/train/rank_share.h"
#include "onetap/train/resolve.h"
#include "onetap/train/teacher.h"
#include "onetap/train/trainer.h"
#include "tools/onetap/console.h"
#include "tools/onetap/init_run.h"
#include "tools/onetap/opened_data.h"
#include "tools/onetap/recipe_file.h"
#include "tools/onetap/recipe_flags.h"
#include "tools/onetap/scratch_folder.h"
#include "tools/onetap/shell_word.h"
#include "tools/onetap/shift_table.h"
#include "tools/onetap/signals.h"
#include "tools/onetap/training.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace onetap::tool {
namespace {

struct TrainOptions {
  std::string recipe_path;
  RecipeFlags flags;
  std::string out;
  bool resume = false;
  bool dry_run = false;
  bool fast_dev_run = false;
  bool json = false;
};

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return std::string(trim(line.substr(line.find(':') + 1)));
  }
  return "unknown";
}

// This process's command line, to be copied into a shell.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return shell_line(words);
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

std::string temperature_text(double temperature) {
  return temperature == Schedule::kHardTemperature ? "  taps fixed" : fmt::format("  T {:.3g}", temperature);
}

std::string step_text(const StepReport& r, bool has_soft) {
  return fmt::format("epoch {}/{}  step {}/{}  loss {:.3f}  acc {}  lr {:.3g}{}  {:.0f} img/s{}  ETA {}", r.epoch,
                     r.epochs, r.step_in_epoch, r.steps_per_epoch, r.loss, percent_text(r.accuracy), r.lr,
                     has_soft ? temperature_text(r.temperature) : "", r.img_per_s, wait_text(r.data_wait),
                     duration_text(r.eta_s));
}

std::string epoch_text(const EpochReport& r, bool has_soft) {
  const auto scores = [&](const MetricLine& line) {
    return has_soft ? fmt::format("{} soft {} hard {}", line.split, percent_text(line.acc_soft),
                                  percent_text(line.acc_hard.value_or(0)))
                    : fmt::format("{} {}", line.split, percent_text(line.acc_soft));
  };
  const std::string test = scores(r.test) + (r.held_test ? "  " + scores(*r.held_test) : "");
  return fmt::format("epoch {}/{}  loss {:.4f}  train {}  {}  lr {:.3g}{}  {:.0f} img/s{}  {}", r.epoch, r.epochs,
                     r.train.loss, percent_text(r.train.acc_soft), test, r.train.lr,
                     has_soft ? temperature_text(r.train.temperature) : "", r.train.img_per_s,
                     wait_text(r.train.data_wait.value_or(0)), duration_text(r.test.wall_s));
}

TrainEvents console_events(bool has_soft) {
  TrainEvents events;
  events.on_step = [has_soft](const StepReport& report) { console().progress(step_text(report, has_soft)); };
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
  const std::string held =
      source.validation != nullptr ? fmt::format(", {} validation", source.validation->size()) : "";
  console().note(fmt::format("{}: {} training{} and {} test images, {} classes", source.spec, source.train->size(),
                             held, source.test->size(), source.classes.size()));
  if (source.image_size == 0) {
    const int64_t side = graph.input().shape[1];
    console().note(fmt::format("images are cropped and scaled to {0}x{0} pixels (--image-size)", side));
  }
  const std::string in_training = with_thousands(dense.params), hard = with_thousands(kept.params);
  console().note(fmt::format("{}, method {}: {} parameters{}", graph.name(), recipe.method, in_training,
                             hard == in_training ? "" : " in training, " + hard + " in the hard network"));
}

void print_result(const TrainOptions& options, const RunFiles& files, bool has_soft) {
  const auto lines = read_metrics(files.metrics());
  const MetricLine* last = last_test(lines);
  if (last == nullptr) return;
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
    constexpr double kFarApart = 0.01;
    if (last->acc_soft - last->acc_hard.value_or(0) >= kFarApart) {
      console().note(
          "hard accuracy is 1 point or more below soft accuracy: --harden 0.8 fixes the taps after 80 % of the steps "
          "and then trains only the kept weights");
    }
  } else {
    console().print(fmt::format("{}: {}", files.root.string(), percent_text(last->acc_soft)));
  }
}

// The best epoch of a run that ended early is not its last one.
void name_best(const RunFiles& files, bool has_soft) {
  const auto state = files.last_state();
  if (!state || !state->ended || state->best_step < 0 || state->best_step == state->step) return;
  for (const MetricLine& line : read_metrics(files.metrics())) {
    if (line.step != state->best_step || line.split == "train") continue;
    console().note(fmt::format(
        "epoch {} has the best {}accuracy on the {} set, {}: 'onetap freeze {} --checkpoint best' freezes it",
        line.epoch, has_soft ? "hard " : "", line.split, percent_text(line.acc_hard.value_or(line.acc_soft)),
        shell_word(files.root.string())));
    return;
  }
}

// Epochs after those of a schedule need the schedule: a run's, or that of a new run, whose epochs are then named.
void check_something_to_extend(const RecipeRequest& request, const RunFiles& files) {
  if (request.recipe.extend == 0 || request.keys.count("epochs") != 0 || files.holds_run()) return;
  fail_usage("[train] expected a run to extend, got {} (a new run with --extend needs --epochs too)",
             files.root.empty() ? "no --out" : "none in " + files.root.string());
}

// Where the next epochs of a run come from: those of the schedule, or more of a finished run.
void check_extension(const RunFiles& files, const Recipe& recipe) {
  if (!files.finished()) {
    fail_usage("[train] expected a finished run to extend, got {}: --resume finishes it", files.root.string());
  }
  const int64_t done = read_metrics(files.metrics()).back().epoch;
  if (done < recipe.all_epochs()) {
    fail_usage("[train] {} ended after {} of {} epochs (patience = {}): a run that ended early cannot be extended",
               files.root.string(), done, recipe.all_epochs(), recipe.patience);
  }
}

// The run's own recipe with `request.recipe.extend` more epochs.
Recipe extended_recipe(const RunFiles& files, RecipeRequest request, const std::string& out) {
  const int64_t more = request.recipe.extend;
  if (more == 0) {
    fail_usage("[train] expected at least 1 epoch to extend a run by, got --extend 0 ({})", files.root.string());
  }
  const std::optional<double> rate = request.recipe.extend_lr;
  request.keys.erase("extend");
  request.keys.erase("extend_lr");
  Recipe recipe = merge_for_resume(files.read_config(), request, "run", out);
  check_extension(files, recipe);
  recipe.extend += more;
  if (rate) recipe.extend_lr = rate;
  return recipe;
}

// One epoch of two steps: all that can go wrong early goes wrong now.
void shorten(Recipe& recipe) {
  const int64_t images = 2 * recipe.batch_size;
  recipe.limit = recipe.limit > 0 ? std::min(recipe.limit, images) : images;
  recipe.epochs = 1;
  recipe.extend = 0;
  recipe.extend_lr.reset();
  recipe.patience = 0;
  recipe.warmup_epochs = std::min(recipe.warmup_epochs, 1.0);
  recipe.recalibrate = std::min(recipe.recalibrate, images);
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
  const DataSource source = open_data(recipe_data(recipe));
  install_signal_handlers(/*speak=*/false);
  const TrainOutcome outcome = train_along(ranks, recipe, graph, source, stop_requested);
  return outcome == TrainOutcome::kInterrupted ? signal_exit_code() : 0;
}

// Values that are wrong whatever the run is.
void check_words(const Recipe& recipe) {
  parse_data_spec(recipe.data);
  if (!is_network_file(recipe.arch)) find_architecture(recipe.arch);
  parse_device(recipe.device);
}

// One process alone, or rank 0.
int run_train(const TrainOptions& options, RankGroup* ranks) {
  RecipeRequest request = read_recipe_request(options.recipe_path, options.flags);
  check_words(request.recipe);
  if (options.out.empty() && !options.dry_run) fail_usage("[train] expected --out RUN, the directory for this run");
  if (options.fast_dev_run) shorten(request.recipe);
  const RunFiles files(options.out);
  check_something_to_extend(request, files);
  // A command that is repeated with --resume extends nothing twice; a recipe that was extended is one to train whole.
  const bool extending = !options.resume && options.flags.given().count("extend") > 0 && files.holds_run();
  const bool resuming = extending || (options.resume && files.holds_run());
  if (!resuming) {
    const std::string taken = take_from_init_run(request);
    if (!taken.empty()) console().note(taken);
  }
  Recipe recipe = extending  ? extended_recipe(files, request, options.out)
                  : resuming ? merge_for_resume(files.read_config(), request, "run", options.out)
                             : request.recipe;
  check_recipe(recipe);
  const std::string pixels = resuming ? "" : take_pixels_of_init(recipe);
  parse_device(recipe.device);
  if (resuming && request.keys.count("precision") > 0) check_precision(recipe);
  const DataSource source = open_data(recipe_data(recipe));
  if (!resuming) recipe = resolve_recipe(recipe, source, ranks != nullptr ? ranks->place().local_size : 1);
  Graph graph =
      resuming ? files.read_graph()
               : recipe_network(recipe, static_cast<int64_t>(source.classes.size()), recipe.image_size.value_or(0));
  check_network(graph, source);
  check_view(recipe, graph, source);
  check_patience(recipe, graph);
  if (!resuming) {
    apply_shift_table(recipe, graph);
    check_init(recipe, graph);
    check_frozen_layers(recipe, graph);
    if (!recipe.teacher.empty()) load_teacher(recipe, graph, source, {});
  }
  RankShare(ranks).check_batches(recipe, source.train->size());
  if (!pixels.empty()) console().note(pixels);
  if (options.dry_run) {
    describe(recipe, source, graph);
    std::cout << recipe_text(recipe);
    return 0;
  }
  const RunDirectory directory = resuming ? RunDirectory::resume(options.out)
                                          : RunDirectory::create(options.out, recipe, graph, make_provenance());
  describe(recipe, source, graph);
  if (extending && !options.dry_run) {
    directory.extend(recipe, command_line());
    const Schedule schedule(recipe, BatchStream::batch_count(source.train->size(), recipe.batch_size));
    console().note(fmt::format("extended by {} epoch{} to {}, at learning rate {:.3g} (--extend-lr)",
                               request.recipe.extend, request.recipe.extend == 1 ? "" : "s", recipe.all_epochs(),
                               schedule.learning_rate(schedule.total_steps() - 1)));
  }
  if (ranks != nullptr) {
    if (ranks->size() > 1) console().note(fmt::format("{} ranks, each computes a part of every batch", ranks->size()));
    share_run(*ranks, recipe, graph);
  }
  install_signal_handlers();
  const bool has_soft = has_soft_form(graph);
  const TrainOutcome outcome = train(directory, recipe, source, console_events(has_soft), stop_requested, ranks);
  console().clear_progress();
  if (outcome == TrainOutcome::kInterrupted) {
    console().note(fmt::format("stopped; 'onetap train --out {} --resume' resumes the run", options.out));
    return signal_exit_code();
  }
  if (options.fast_dev_run && !options.json) {
    console().print(
        "fast dev run: an epoch of at most two steps, its test and its checkpoint succeeded; nothing is kept");
  } else {
    print_result(options, files, has_soft);
    name_best(files, has_soft);
  }
  return 0;
}

std::chrono::seconds rank_timeout() {
  constexpr int64_t kUsual = 300;
  const char* text = std::getenv("ONETAP_RANK_TIMEOUT");
  const auto seconds = text == nullptr ? std::optional<int64_t>(kUsual) : parse_int(text);
  if (!seconds || *seconds < 1) fail_usage("[ranks] expected ONETAP_RANK_TIMEOUT in seconds, got '{}'", text);
  return std::chrono::seconds(*seconds);
}

// Trains, tests and writes a checkpoint in a folder that is removed again.
int run_fast_dev(TrainOptions options) {
  if (options.resume || options.dry_run) {
    fail_usage("[train] --fast-dev-run cannot be combined with --resume or --dry-run");
  }
  if (!options.out.empty()) console().note("--fast-dev-run keeps nothing: " + options.out + " is left as it is");
  if (rank_place().launched) fail_usage("[train] expected one process for --fast-dev-run, got several ranks");
  const ScratchFolder folder("dev-run");
  options.out = folder.file("run");
  return run_train(options, nullptr);
}

int run_as_launched(const TrainOptions& options) {
  if (options.fast_dev_run) return run_fast_dev(options);
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

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand(kTrain.name, kTrain.summary);
  verb->add_option("RECIPE", options->recipe_path,
                   "a recipe in TOML, or the name of one that is installed; flags override it")
      ->check(recipe_file());
  verb->add_option("-o,--out", options->out, "directory of the run")->option_text("RUN");
  verb->add_flag("--resume", options->resume, "resume from the newest checkpoint in RUN; start if there is none");
  verb->add_flag("--dry-run", options->dry_run, "check everything, print the resolved recipe, train nothing");
  verb->add_flag("--fast-dev-run", options->fast_dev_run,
                 "try the command: one epoch of at most two batches, a test and a checkpoint; keep nothing");
  verb->add_flag("--json", options->json, "print the result as JSON");
  options->flags.add(*verb);
  verb->footer(
      "Examples:\n"
      "  onetap train --data shapes --arch resnet8 --epochs 10 --out runs/first\n"
      "  onetap train recipes/cifar10-sanet.toml --data cifar10:DIR --out runs/sanet --resume\n"
      "  onetap train --arch my.net --method sal --layers 'layer2.*,layer3.*' --out runs/mine\n"
      "  onetap launch -n 2 -- train recipes/demo.toml --out runs/two    (also torchrun --no-python, srun, mpirun)\n"
      "  onetap train recipes/small-folder.toml --data folder:photos --out runs/photos\n"
      "  onetap train --out runs/first --extend 5        (5 more epochs of a finished run)\n"
      "\nA run that was killed, interrupted or ran out of disk resumes with the same command and --resume;\n"
      "on a CPU its results are bit-identical to those of an uninterrupted run.");
  verb->callback([options, &action] { action = [options] { return run_as_launched(*options); }; });
}

}  // namespace onetap::tool
