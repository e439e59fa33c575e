// onetap reproduce: the paper's tables and figures, trained and set beside the published ones.
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/reproduce/experiment.h"
#include "onetap/reproduce/pace.h"
#include "tools/onetap/console.h"
#include "tools/onetap/job_runner.h"
#include "tools/onetap/number_range.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/recipe_flags.h"
#include "tools/onetap/reproduce_data.h"
#include "tools/onetap/reproduce_results.h"
#include "tools/onetap/shell_word.h"
#include "tools/onetap/sweep_results.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <set>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

struct ReproduceOptions {
  std::vector<std::string> names;
  std::vector<std::string> data;
  std::string seeds = "0";
  std::vector<std::string> only;
  std::string out = "reproduced";
  std::string program;
  RecipeFlags flags;
  double scale = 1;
  size_t jobs = 1;
  bool list = false;
  bool dry_run = false;
  bool report_only = false;
  bool json = false;
};

// What a training may be told that does not change what is trained: the table of experiments decides the rest.
const std::vector<std::string> kRunFields = {
    "device",     "precision",         "engine",           "cuda_graph",      "conv_trials", "threads", "workers",
    "eval_every", "checkpoint_epochs", "checkpoint_steps", "keep_checkpoints"};

std::vector<const Experiment*> chosen_experiments(const ReproduceOptions& options) {
  std::vector<const Experiment*> chosen;
  const auto add = [&](const Experiment& experiment) {
    if (std::find(chosen.begin(), chosen.end(), &experiment) == chosen.end()) chosen.push_back(&experiment);
  };
  for (const std::string& name : options.names) {
    if (name != "all") {
      add(find_experiment(name));
      continue;
    }
    for (const Experiment& experiment : experiments()) {
      if (experiment.in_all) add(experiment);
    }
  }
  if (chosen.empty()) {
    fail_usage("[reproduce] expected a name: {}, all ('onetap reproduce --list' explains them)",
               join(experiment_names(), ", "));
  }
  return chosen;
}

void check_only(const std::vector<const Experiment*>& chosen, const std::vector<std::string>& only) {
  for (const std::string& glob : only) {
    std::vector<std::string> labels;
    bool matches = false;
    for (const Experiment* experiment : chosen) {
      for (const ExperimentRow& row : experiment->rows) {
        matches = matches || is_chosen(row, {glob});
        if (std::find(labels.begin(), labels.end(), row.label) == labels.end()) labels.push_back(row.label);
      }
    }
    if (!matches) {
      constexpr size_t kSome = 12;
      const std::string more = labels.size() > kSome ? ", ..." : "";
      labels.resize(std::min(labels.size(), kSome));
      fail_usage("[reproduce] expected --only with a row's name, got '{}'; rows: {}{}", glob, join(labels, ", "), more);
    }
  }
}

int print_list(const ReproduceOptions& options) {
  Table table({{"name"}, {"rows", Table::Align::kRight}, {"data"}, {"what"}});
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Experiment& experiment : experiments()) {
    std::vector<std::string> data;
    for (const ExperimentRow& row : experiment.rows) {
      const std::string& title = experiment_data(row.run.data).title;
      if (std::find(data.begin(), data.end(), title) == data.end()) data.push_back(title);
    }
    table.add({experiment.name, fmt::format("{}", experiment.rows.size()), join(data, ", "), experiment.title});
    list.push_back(
        {{"name", experiment.name}, {"rows", experiment.rows.size()}, {"data", data}, {"title", experiment.title}});
  }
  std::cout << (options.json ? json_text(list, 2) + '\n' : table.text());
  return 0;
}

std::string command_text(const Job& job) {
  return "onetap " + shell_line(job.arguments);
}

const char* job_state(const Job& job, bool has_data) {
  if (job.is_done()) return "finished";
  if (!has_data) return "no data";
  return job.kind == Job::Kind::kTrain && job.run.files().holds_run() ? "resumes" : "new";
}

// Of the epochs of a training.
double share_left(const Job& job) {
  const auto scores = read_scores(job.run.files());
  return scores ? 1 - static_cast<double>(scores->epochs) / static_cast<double>(job.run.epochs) : 1;
}

// By what was asked for; "auto" is a GPU where there is one.
bool trains_on_cpu(const ReproduceOptions& options) {
  const auto device = options.flags.given().find("device");
  if (device == options.flags.given().end() || device->second == "auto") return !fs::exists("/dev/nvidiactl");
  return device->second == "cpu";
}

// Every job with its command, and how long the trainings will take.
int print_plan(const ReproduceOptions& options, const std::vector<Job>& jobs,
               const std::map<std::string, std::string>& data) {
  const bool on_cpu = trains_on_cpu(options);
  double total = 0;
  size_t known = 0, unknown = 0;  // trainings to do, by whether their length is
  std::set<std::string> sources;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Job& job : jobs) {
    const bool has_data = data.count(job.spec->data) > 0;
    const char* state = job_state(job, has_data);
    nlohmann::ordered_json entry = {{"job", job.name}, {"state", state}, {"command", command_text(job)}};
    std::string line = fmt::format("{}: {}", job.name, state);
    if (job.kind == Job::Kind::kTrain) {
      line += fmt::format(", {} epochs, {} steps", job.run.epochs, job.steps);
      entry["epochs"] = job.run.epochs;
      entry["steps"] = job.steps;
      const auto pace = expected_pace(job, options.out, on_cpu);
      const bool is_done = job.is_done();
      if (pace && !is_done) {
        const double seconds = pace->seconds_per_step * static_cast<double>(job.steps) * share_left(job);
        line += fmt::format(", about {} by {}", duration_text(seconds), pace->source);
        entry["seconds"] = seconds;
        entry["seconds_by"] = pace->source;
        if (has_data) total += seconds;
        sources.insert(pace->source);
      }
      if (has_data && !is_done) ++(pace ? known : unknown);
    }
    if (!options.json) {
      console().print(line);
      console().print("  " + command_text(job));
    }
    list.push_back(std::move(entry));
  }
  if (options.json) {
    std::cout << json_text(list, 2) << '\n';
    return 0;
  }
  std::string summary = jobs.size() == 1 ? "1 job" : fmt::format("{} jobs", jobs.size());
  if (known > 0) summary += fmt::format(", trainings of about {} one after another", duration_text(total));
  if (unknown > 0)
    summary +=
        fmt::format(", {} of unknown length", unknown == 1 ? "1 training" : fmt::format("{} trainings", unknown));
  console().note(summary);
  if (sources.count(RunPace::kModel) > 0) {
    console().note("'by H200': scaled from steps of ResNet-20 that were measured there; runs in --out replace it");
  }
  return 0;
}

// A run that is there must be the one that is planned.
void check_begun(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    if (job.kind == Job::Kind::kTrain && job.run.files().holds_run()) check_run(job);
  }
}

class Reproduction {
 public:
  Reproduction(const ReproduceOptions& options, std::vector<const Experiment*> chosen,
               std::map<std::string, std::string> data, std::vector<Job> jobs)
      : options_(options), chosen_(std::move(chosen)), data_(std::move(data)), jobs_(std::move(jobs)) {}

  int run() {
    make_directories(options_.out);
    const DirectoryLock lock(options_.out);
    note_missing();
    JobRunnerOptions runner_options;
    runner_options.program = options_.program;
    runner_options.at_a_time = options_.jobs;
    runner_options.on_done = [this](const Job& job) { write_results(&job); };
    JobRunner runner(jobs_, std::move(runner_options));
    const int interrupted_by = runner.run();
    write_results(nullptr);
    print();
    if (interrupted_by != 0 && runner.done() < jobs_.size()) {
      console().note("stopped; the same command resumes");
      return 128 + interrupted_by;
    }
    if (const auto lost = runner.lost(); !lost.empty()) {
      fail("[reproduce] {} of {} jobs failed or depend on one that did: {}; the same command tries them again",
           lost.size(), jobs_.size(), join(lost, ", "));
    }
    return 0;
  }

  int report() {
    write_results(nullptr);
    print();
    return 0;
  }

 private:
  void note_missing() const {
    std::set<std::string> missing;
    for (const Experiment* experiment : chosen_) {
      for (const ExperimentRow& row : experiment->rows) {
        if (is_chosen(row, options_.only) && data_.count(row.run.data) == 0) missing.insert(row.run.data);
      }
    }
    for (const std::string& name : missing) console().warn("no data for some rows: " + fetch_advice(name));
  }

  // Of the experiments that have a row with this job's run, or of all.
  void write_results(const Job* job) const {
    for (const Experiment* experiment : chosen_) {
      const bool touched = job == nullptr ||
                           std::any_of(experiment->rows.begin(), experiment->rows.end(), [&](const ExperimentRow& row) {
                             return run_stem(row.run) == run_stem(*job->spec);
                           });
      if (!touched) continue;
      try {
        ExperimentResults(*experiment, options_.out, data_).write();
      } catch (const Error& problem) {
        if (job == nullptr) throw;
        // The runs are worth more than the tables, which are made again after each of them.
        console().warn(problem.what());
      }
    }
  }

  void print() const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    std::string text;
    for (const Experiment* experiment : chosen_) {
      const ExperimentResults results(*experiment, options_.out, data_);
      list.push_back(results.json());
      text += (text.empty() ? "" : "\n") + results.text() + (results.folder() / "index.html").string() + '\n';
    }
    std::cout << (options_.json ? json_text(list, 2) + '\n' : text);
  }

  const ReproduceOptions& options_;
  const std::vector<const Experiment*> chosen_;
  const std::map<std::string, std::string> data_;
  const std::vector<Job> jobs_;
};

// kData if there is nothing to train on.
void require_data(const std::vector<const Experiment*>& chosen, const ReproduceOptions& options,
                  const std::map<std::string, std::string>& data) {
  std::vector<std::string> advice;
  for (const Experiment* experiment : chosen) {
    for (const ExperimentRow& row : experiment->rows) {
      if (!is_chosen(row, options.only)) continue;
      if (data.count(row.run.data) > 0) return;
      const std::string text = fetch_advice(row.run.data);
      if (std::find(advice.begin(), advice.end(), text) == advice.end()) advice.push_back(text);
    }
  }
  fail_data("[reproduce] expected data to train on, got none; {}", join(advice, "; "));
}

std::vector<uint64_t> parse_seeds(const std::string& text) {
  std::vector<uint64_t> seeds;
  for (const std::string_view word : split(text, ',')) {
    const auto seed = parse_int(word);
    if (!seed || *seed < 0) fail_usage("[reproduce] expected --seeds N,N,..., got '{}'", text);
    seeds.push_back(static_cast<uint64_t>(*seed));
  }
  return seeds;
}

int run_reproduce(const ReproduceOptions& given) {
  if (given.list) return print_list(given);
  ReproduceOptions options = given;
  options.out = fs::absolute(options.out).lexically_normal().string();
  const auto chosen = chosen_experiments(options);
  check_only(chosen, options.only);
  Recipe scratch;
  options.flags.apply(scratch);  // checks what was typed
  const auto data = find_experiment_data(options.data);
  JobOptions plan;
  plan.out = options.out;
  plan.seeds = parse_seeds(options.seeds);
  plan.scale = options.scale;
  plan.only = options.only;
  plan.run_fields = options.flags.given();
  plan.data = data;
  if (options.report_only) return Reproduction(options, chosen, data, {}).report();
  if (options.dry_run) {
    for (const char* name : {"cifar10", "cifar100"}) plan.data.emplace(name, std::string(name) + ":DIR");
    plan.data.emplace("imagenet", "folder:DIR");
    const auto jobs = plan_jobs(chosen, plan);
    check_begun(jobs);
    return print_plan(options, jobs, data);
  }
  if (options.program.empty()) require_training("reproduce");
  require_data(chosen, options, data);
  std::vector<Job> jobs = plan_jobs(chosen, plan);
  check_begun(jobs);
  return Reproduction(options, chosen, data, std::move(jobs)).run();
}

}  // namespace

void add_reproduce(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReproduceOptions>();
  CLI::App* verb = app.add_subcommand(
      "reproduce", "run the paper's experiments: tables and figures with our results and the published ones");
  std::vector<std::string> words = experiment_names();
  words.emplace_back("all");
  verb->add_option("NAME", options->names, "experiments ('--list' prints them), or all for those of the paper")
      ->check(offered(words))
      ->option_text("TEXT ...");
  verb->add_flag("--list", options->list, "list the experiments and what each needs");
  verb->add_flag("--dry-run", options->dry_run,
                 "list every run with its command and its estimated time, train nothing");
  verb->add_option("--epochs-scale", options->scale,
                   "multiply the epochs of every run, and those at which its learning rate drops")
      ->check(number_from(0.001, 10))
      ->option_text("X [1]");
  verb->add_option("--seeds", options->seeds, "train each row with these seeds")->option_text("N,... [0]");
  verb->add_option("--only", options->only, "only rows of this name ('*' and '?' match); may be given several times")
      ->allow_extra_args(false)
      ->option_text("ROW");
  verb->add_option(
          "--data", options->data,
          "cifar10:DIR, cifar100:DIR, folder:DIR (ImageNet); once for each (default: the data cache of 'data fetch')")
      ->allow_extra_args(false)
      ->check(offered(data_words()))
      ->option_text("TEXT");
  verb->add_option("-o,--out", options->out, "directory for the runs and the results")->option_text("DIR [reproduced]");
  verb->add_option("-j,--jobs", options->jobs, "runs at a time; they share the cores and the GPU")
      ->check(CLI::Range(1, 1024))
      ->option_text("N [1]");
  verb->add_flag("--report-only", options->report_only, "write tables, figures and pages from the existing runs")
      ->excludes("--dry-run");
  verb->add_flag("--json", options->json, "print the results as JSON");
  verb->add_option("--program", options->program, "start this program instead of onetap itself")->option_text("PATH");
  options->flags.add(*verb, kRunFields);
  verb->footer(
      "Examples:\n"
      "  onetap reproduce --list\n"
      "  onetap reproduce demo                                             # a minute, no data needed\n"
      "  onetap reproduce table1 --dry-run --data cifar10:DIR --data cifar100:DIR\n"
      "  onetap reproduce table1 --epochs-scale 0.1 --data cifar10:DIR --out tenth --device cuda\n"
      "  onetap reproduce table1 --only SANet --seeds 0,1 --data cifar10:DIR --out paper -j 2\n"
      "  onetap reproduce all --report-only --out paper\n"
      "\nRuns are in DIR/runs, shared by all experiments; results.md, results.csv, results.json, figure.svg and\n"
      "index.html in DIR/NAME. Ctrl-C stops with checkpoints; the same command resumes, retries what failed and\n"
      "trains nothing twice. Each row shows its longest finished runs. Rows without data are marked.");
  verb->callback([options, &action] { action = [options] { return run_reproduce(*options); }; });
}

}  // namespace onetap::tool
