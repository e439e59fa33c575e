// onetap sweep: a recipe trained with every combination of some settings.
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/data/source.h"
#include "tools/onetap/console.h"
#include "tools/onetap/init_run.h"
#include "tools/onetap/last_words.h"
#include "tools/onetap/processes.h"
#include "tools/onetap/recipe_file.h"
#include "tools/onetap/recipe_flags.h"
#include "tools/onetap/sweep_plan.h"
#include "tools/onetap/sweep_results.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct SweepOptions {
  std::string recipe_path;
  RecipeFlags flags;
  std::vector<std::string> grid;
  std::string out;
  std::string program;
  size_t jobs = 1;
  bool dry_run = false;
  bool json = false;
};

SweepPlan make_plan(const SweepOptions& options) {
  RecipeRequest request = read_recipe_request(options.recipe_path, options.flags);
  const Grid asked = parse_grid(options.grid);
  for (const GridAxis& axis : asked) {
    if (options.flags.given().count(axis.field->key) > 0) {
      fail_usage("[sweep] expected one of --grid {} and {}, got both", axis.field->key, axis.field->flag());
    }
  }
  if (RunFiles(options.out).holds_run()) {
    fail_usage("[sweep] expected a directory for runs, got a run: {}", options.out);
  }
  if (auto former = read_plan(options.out)) {
    if (!asked.empty()) former->grid = extend_grid(former->grid, asked, options.out);
    for (const GridAxis& axis : former->grid) request.keys.erase(axis.field->key);
    former->recipe = merge_for_resume(std::move(former->recipe), request, "sweep", options.out);
    return *former;
  }
  if (asked.empty()) fail_usage("[sweep] expected --grid KEY=VALUE,VALUE..., the settings to vary");
  for (const GridAxis& axis : asked) request.keys.insert(axis.field->key);
  const std::string taken = take_from_init_run(request);
  if (!taken.empty()) console().note(taken);
  // From wherever the sweep goes on, it is the same data and the same network.
  request.recipe.data = absolute_data_spec(request.recipe.data);
  make_paths_absolute(request.recipe);
  return {request.recipe, asked};
}

// What can be known to be wrong before hours of training is said now.
void check_runs(const SweepPlan& plan, const std::vector<SweepRun>& runs) {
  for (const SweepRun& run : runs) {
    try {
      const Recipe recipe = run_recipe(plan.recipe, plan.grid, run);
      check_recipe(recipe);
      parse_data_spec(recipe.data);
    } catch (const Error& problem) {
      throw Error(problem.kind(), fmt::format("{} ({})", problem.what(), run.name));
    }
  }
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, SweepPlan plan) : options_(options), plan_(std::move(plan)), out_(options.out) {
    for (SweepRun& run : grid_runs(plan_.grid)) {
      Slot slot{{run, RunPhase::kWaiting, std::nullopt}, RunFiles(out_ / run.name)};
      slot.epochs = run_recipe(plan_.recipe, plan_.grid, run).all_epochs();
      if (slot.files.finished()) slot.result.phase = RunPhase::kFinished;
      slot.look();
      slot.epochs_before = slot.epochs_done();
      slots_.push_back(std::move(slot));
    }
  }

  void print_plan() const {
    Table table({{"run"}, {"state"}});
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Slot& slot : slots_) {
      const char* state = slot.result.phase == RunPhase::kFinished ? "finished"
                          : slot.files.holds_run()                 ? "resumes"
                                                                   : "new";
      table.add({slot.result.run.name, state});
      list.push_back({{"name", slot.result.run.name}, {"state", state}});
    }
    std::cout << (options_.json ? json_text(list, 2) + '\n' : table.text());
  }

  int run() {
    const DirectoryLock lock(out_);
    write_plan(out_, plan_);
    Processes children;
    started_ = Clock::now();
    size_t next = 0;
    while (true) {
      // What failed in an earlier call is tried again, and what was stopped goes on: each once.
      for (; next < slots_.size() && children.running() < options_.jobs && children.interrupted_by() == 0; ++next) {
        if (slots_[next].result.phase != RunPhase::kFinished) start(children, next);
      }
      if (children.running() == 0) break;
      show_progress();
      const Processes::Event event = children.wait(std::chrono::milliseconds(500));
      if (event.kind == Processes::Event::Kind::kEnded) {
        finish(running_.at(event.id), event.ending, children.interrupted_by() != 0);
      }
      if (event.kind == Processes::Event::Kind::kInterrupted) {
        console().note("stopping the runs, with checkpoints (a second signal stops them at once)");
      }
    }
    console().clear_progress();
    return conclude(children.interrupted_by());
  }

 private:
  struct Slot {
    RunResult result;
    RunFiles files;
    int64_t epochs = 0;
    int64_t epochs_before = 0;  // done when this call began

    void look() { result.scores = read_scores(files); }
    int64_t epochs_done() const { return result.scores ? result.scores->epochs : 0; }
  };

  fs::path log_path(const Slot& slot) const { return out_ / (slot.result.run.name + ".log"); }

  void start(Processes& children, size_t index) {
    Slot& slot = slots_[index];
    const SweepRun& run = slot.result.run;
    Command command{options_.program, {"train", planned_recipe_path(out_).string()}};
    for (size_t i = 0; i < plan_.grid.size(); ++i) {
      command.arguments.push_back(plan_.grid[i].field->flag_with(run.values[i]));
    }
    command.arguments.insert(command.arguments.end(), {"--out", slot.files.root.string(), "--resume"});
    command.out = command.err = Sink::kLog;
    command.log = log_path(slot);
    console().detail(fmt::format("{}: {}", run.name, slot.files.holds_run() ? "resumes" : "starts"));
    running_[children.start(command)] = index;
    slot.result.phase = RunPhase::kRunning;
  }

  void finish(size_t index, const Ending& ending, bool interrupted) {
    Slot& slot = slots_[index];
    const std::string& name = slot.result.run.name;
    slot.look();
    if (!ending.failed()) {
      slot.result.phase = RunPhase::kFinished;
      const auto& scores = slot.result.scores;
      console().note(scores ? fmt::format("{}: soft {}, hard {}, {}", name, percent_text(scores->acc_soft),
                                          percent_text(scores->acc_hard.value_or(0)), duration_text(scores->wall_s))
                            : name + ": finished");
    } else if (interrupted) {
      slot.result.phase = RunPhase::kStopped;
    } else {
      slot.result.phase = RunPhase::kFailed;
      console().warn(
          fmt::format("{} {}: {} ({})", name, ending.text(), last_words(log_path(slot)), log_path(slot).string()));
    }
    try {
      results().write(out_);
    } catch (const Error& problem) {
      // The runs are worth more than the table, which is made again after each of them.
      console().warn(problem.what());
    }
  }

  void show_progress() {
    if (!console().shows_progress()) return;
    int64_t total = 0, done = 0, before = 0;
    for (Slot& slot : slots_) {
      if (slot.result.phase == RunPhase::kRunning) slot.look();
      if (slot.result.phase == RunPhase::kFailed) continue;
      total += slot.epochs;
      done += slot.epochs_done();
      before += slot.epochs_before;
    }
    const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
    const auto now = static_cast<double>(done - before);
    const std::string eta =
        now > 0 ? "ETA " + duration_text(elapsed / now * static_cast<double>(total - done)) : "ETA after an epoch";
    console().progress(fmt::format("{} of {} runs done, {} running, {} failed  epoch {}/{}  {}",
                                   count(RunPhase::kFinished), slots_.size(), count(RunPhase::kRunning),
                                   count(RunPhase::kFailed), done, total, eta));
  }

  size_t count(RunPhase phase) const {
    return static_cast<size_t>(
        std::count_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.result.phase == phase; }));
  }

  SweepResults results() const {
    std::vector<RunResult> rows;
    for (const Slot& slot : slots_) rows.push_back(slot.result);
    return {plan_.grid, std::move(rows)};
  }

  int conclude(int interrupted_by) {
    const SweepResults all = results();
    all.write(out_);
    std::cout << (options_.json ? json_text(all.json(), 2) + '\n' : all.text());
    const size_t failed = count(RunPhase::kFailed);
    if (interrupted_by != 0 && count(RunPhase::kFinished) < slots_.size()) {
      console().note(fmt::format("stopped; 'onetap sweep --out {}' resumes the sweep", options_.out));
      return 128 + interrupted_by;
    }
    if (failed > 0) {
      fail("[sweep] {} of {} runs failed; 'onetap sweep --out {}' tries them again", failed, slots_.size(),
           options_.out);
    }
    return 0;
  }

  const SweepOptions& options_;
  const SweepPlan plan_;
  const fs::path out_;
  std::vector<Slot> slots_;
  std::map<size_t, size_t> running_;  // of processes, to slots
  Clock::time_point started_;
};

int run_sweep(const SweepOptions& options) {
  if (options.program.empty()) require_training("sweep");
  SweepPlan plan = make_plan(options);
  check_runs(plan, grid_runs(plan.grid));
  if (!options.dry_run) make_directories(options.out);
  Sweep sweep(options, std::move(plan));
  if (!options.dry_run) return sweep.run();
  sweep.print_plan();
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* verb = app.add_subcommand("sweep", "train every combination of some settings");
  verb->add_option("RECIPE", options->recipe_path,
                   "a recipe in TOML, or the name of one that is installed; flags override it")
      ->check(recipe_file());
  verb->add_option("--grid", options->grid, "a key of the recipe and its values; once for each key that varies")
      ->allow_extra_args(false)
      ->option_text("KEY=VALUE,VALUE...");
  verb->add_option("-o,--out", options->out, "directory for the runs and the results")->required()->option_text("DIR");
  verb->add_option("-j,--jobs", options->jobs, "runs at a time; they share the cores and the GPU")
      ->check(CLI::Range(1, 1024))
      ->option_text("N [1]");
  verb->add_flag("--dry-run", options->dry_run, "check everything, list the runs, train nothing");
  verb->add_flag("--json", options->json, "print the results as JSON");
  verb->add_option("--program", options->program, "start this program instead of onetap itself")->option_text("PATH");
  options->flags.add(*verb);
  verb->footer(
      "Examples:\n"
      "  onetap sweep recipes/demo.toml --grid seed=0,1,2 --grid t1=0.02,0.1 --out sweeps/t1\n"
      "  onetap sweep --out sweeps/t1                                      # resumes, or retries failed runs\n"
      "  onetap sweep recipes/demo.toml --grid seed=0,1,2,3 --grid t1=0.02,0.1 --out sweeps/t1     # one more seed\n"
      "  onetap sweep recipes/demo.toml --grid 'layers=layer2.*,layer3.*;layer3.*' --out sweeps/layers --jobs 2\n"
      "\nEvery run is a run directory DIR/seed=0,t1=0.02 with its log beside it. DIR/results.csv and DIR/results.md\n"
      "are rewritten after each run; if the seed varies, they have means and deviations over seeds.\n"
      "Semicolons separate values that hold commas. Ctrl-C stops the runs with checkpoints.");
  verb->callback([options, &action] { action = [options] { return run_sweep(*options); }; });
}

}  // namespace onetap::tool
