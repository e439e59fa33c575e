#include "onetap/reproduce/plan.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/sha256.h"
#include "onetap/base/text.h"
#include "onetap/reproduce/rows.h"
#include "onetap/tap/tap_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using Takes = RunSpec::Takes;

fs::path runs_folder(const fs::path& out) {
  return out / "runs";
}

// Settings with a short word of their own in the names of runs; the others make a mark together.
struct NamedSetting {
  const char* key;
  const char* prefix;
  const char* usual;
};
constexpr NamedSetting kNamed[] = {
    {"arch", "", ""},           {"width", "w", ""},      {"kernel", "k", "3"},
    {"expansion", "x", ""},     {"shortcut", "sc", "B"}, {"method", "", ""},
    {"taps", "taps", "1"},      {"share", "share", "1"}, {"tap_init", "", "uniform"},
    {"bwn_scale", "", "layer"}, {"t0", "T", "6.7"},      {"t1", "t", "0.02"},
};

// Of everything else that differs from the usual training of its data set.
std::string mark(const RunSpec& spec) {
  const Settings usual = spec.data.rfind("cifar", 0) == 0 ? cifar_training() : Settings{};
  std::string text;
  for (const auto& [key, value] : spec.settings) {
    const bool named = std::any_of(std::begin(kNamed), std::end(kNamed),
                                   [&key = key](const NamedSetting& setting) { return key == setting.key; });
    const bool is_usual = std::find(usual.begin(), usual.end(), std::pair(key, value)) != usual.end();
    if (!named && !is_usual && key != "epochs") text += fmt::format("{}={};", key, value);
  }
  if (spec.teacher != nullptr) text += fmt::format("teacher={};", run_stem(*spec.teacher));
  if (text.empty()) return "";
  Sha256 hash;
  hash.update(text.data(), text.size());
  return "-" + hash.hex().substr(0, 6);
}

std::string cut_name(const CutSpec& cut) {
  return cut.by + "-" + (cut.preset.empty() ? cut.ratio : cut.preset);
}

// "STEM-e300-s0" to 300 and 0.
std::optional<RunPlace> parse_run_name(const fs::path& directory, const std::string& stem) {
  RunPlace place{directory.filename().string(), directory};
  const std::string& name = place.name;
  if (name.size() <= stem.size() + 2 || name.compare(0, stem.size() + 2, stem + "-e") != 0) return std::nullopt;
  const auto parts = split(std::string_view(name).substr(stem.size() + 2), '-');
  if (parts.size() != 2 || parts[1].empty() || parts[1].front() != 's') return std::nullopt;
  const auto epochs = parse_int(parts[0]), seed = parse_int(parts[1].substr(1));
  if (!epochs || !seed || *epochs < 1 || *seed < 0) return std::nullopt;
  place.epochs = *epochs;
  place.seed = static_cast<uint64_t>(*seed);
  return place;
}

// A value without the length of the run that it names: "-e300" of ".../runs/STEM-e300-s0".
std::string without_epochs(const std::string& value) {
  const size_t at = value.rfind("-e");
  if (at == std::string::npos) return value;
  const size_t end = value.find_first_not_of("0123456789", at + 2);
  if (end == at + 2 || end == std::string::npos || value.compare(end, 2, "-s") != 0) return value;
  return value.substr(0, at) + value.substr(end);
}

// A run that has begun keeps what it began from: of the same training, though a longer one has finished since.
void keep_begun(const RunPlace& run, Settings& given) {
  if (!run.files().holds_run()) return;
  const Recipe begun = run.files().read_config();
  for (auto& [key, value] : given) {
    const std::string before = recipe_field_text(begun, known_recipe_field(key, key));
    if (without_epochs(before) == without_epochs(value)) value = before;
  }
}

// What a command has written is used if it can be read; otherwise the command runs again.
bool is_whole(const fs::path& path) {
  try {
    if (path.extension() == ".tap") read_tap(path);
    return path.extension() != ".json" || !parse_json(read_file(path, 1u << 24)).is_discarded();
  } catch (const Error&) {
    return false;
  }
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

class Planner {
 public:
  explicit Planner(const JobOptions& options) : options_(options) {}

  void add_row(const Experiment& experiment, const ExperimentRow& row) {
    for (const uint64_t seed : options_.seeds) {
      const size_t trained = train(row.run, seed);
      const bool has_soft = row.run.setting("method") == "sal";
      if (experiment.rounds && has_soft) round(trained);
      if (!experiment.freezes && !experiment.times) continue;
      const size_t frozen = freeze(trained);
      if (experiment.freezes) evaluate(frozen);
      if (experiment.times) time(frozen);
    }
  }

  std::vector<Job> finish() { return std::move(jobs_); }

 private:
  // Adds the job, or finds the one of that name.
  size_t add(Job job) {
    const auto known =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& other) { return other.name == job.name; });
    if (known != jobs_.end()) return static_cast<size_t>(known - jobs_.begin());
    jobs_.push_back(std::move(job));
    return jobs_.size() - 1;
  }

  const std::string& data(const RunSpec& spec) const { return options_.data.at(spec.data); }

  RunPlace place(const RunSpec& spec, uint64_t seed) const {
    const std::string stem = run_stem(spec);
    RunPlace wanted;
    wanted.epochs = experiment_recipe(spec, options_.scale).epochs;
    wanted.seed = seed;
    wanted.name = fmt::format("{}-e{}-s{}", stem, wanted.epochs, seed);
    wanted.directory = runs_folder(options_.out) / wanted.name;
    for (const RunPlace& other : find_runs(options_.out, stem)) {
      if (other.seed == seed && other.epochs > wanted.epochs && other.files().finished()) wanted = other;
    }
    return wanted;
  }

  size_t train(const RunSpec& spec, uint64_t seed) {
    Job job;
    job.run = place(spec, seed);
    job.name = job.run.name;
    job.spec = &spec;
    job.log = job.run.log();
    Settings given;
    if (spec.takes != Takes::kNothing) {
      const size_t source = train(*spec.source, seed);
      const std::string from = jobs_[source].run.directory.string();
      job.after = {source};
      if (spec.takes == Takes::kWeights) given = {{"init", from}};
      if (spec.takes == Takes::kShifts) given = {{"shift_table", "from:" + from}};
      if (spec.takes == Takes::kChannels) {
        job.after = {cut(spec, source)};
        const fs::path folder = jobs_[job.after.front()].output.parent_path();
        given = {{"arch", (folder / "network.txt").string()}, {"init", (folder / "weights.safetensors").string()}};
      }
    }
    if (spec.teacher != nullptr) {
      const size_t teacher = train(*spec.teacher, seed);
      job.after.push_back(teacher);
      given.emplace_back("teacher", jobs_[teacher].run.directory.string());
    }
    keep_begun(job.run, given);
    job.is_longer = job.run.epochs != experiment_recipe(spec, options_.scale).epochs;
    const auto full = static_cast<double>(experiment_recipe(spec, 1).epochs);
    const Recipe recipe =
        experiment_recipe(spec, job.is_longer ? static_cast<double>(job.run.epochs) / full : options_.scale);
    const int64_t images = experiment_data(spec.data).train_images;
    job.steps = job.run.epochs * ((images + recipe.batch_size - 1) / recipe.batch_size);
    job.arguments = {"train"};
    job.settings = with(given, settings_of(spec, recipe, given));
    for (const auto& [key, value] : job.settings) job.arguments.push_back(flag(key, value));
    for (const auto& [key, value] : options_.run_fields) job.arguments.push_back(flag(key, value));
    job.arguments.push_back("--data=" + data(spec));
    job.arguments.push_back(fmt::format("--seed={}", seed));
    job.arguments.insert(job.arguments.end(), {"--out", job.run.directory.string(), "--resume"});
    return add(std::move(job));
  }

  // The spec's settings as the scaled recipe has them, but for what the source has given.
  static Settings settings_of(const RunSpec& spec, const Recipe& recipe, const Settings& given) {
    Settings settings;
    for (const auto& [key, value] : spec.settings) {
      const bool is_given =
          std::any_of(given.begin(), given.end(), [&key = key](const auto& other) { return other.first == key; });
      if (!is_given) settings.emplace_back(key, recipe_field_text(recipe, known_recipe_field(key, key)));
    }
    return settings;
  }

  static std::string flag(const std::string& key, const std::string& value) {
    return known_recipe_field(key, key).flag_with(value);
  }

  size_t cut(const RunSpec& spec, size_t source) {
    const RunPlace& from = jobs_[source].run;
    Job job = made_of(Job::Kind::kCut, from, &spec, from.name + " " + cut_name(spec.cut), source);
    const fs::path folder = options_.out / "cuts" / fmt::format("{}-{}", from.name, cut_name(spec.cut));
    job.output = folder / "network.txt";  // written by the command itself, with the weights
    job.arguments = {"prune", from.directory.string(), "--by=" + spec.cut.by};
    job.arguments.push_back(spec.cut.preset.empty() ? "--ratio=" + spec.cut.ratio : "--preset=" + spec.cut.preset);
    job.arguments.insert(job.arguments.end(), {"--data=" + data(spec), fmt::format("--seed={}", from.seed)});
    add_run_fields(job, {"device", "threads"});
    job.arguments.insert(job.arguments.end(), {"-o", folder.string()});
    return add(std::move(job));
  }

  size_t freeze(size_t trained) {
    const Job& of = jobs_[trained];
    Job job = made_of(Job::Kind::kFreeze, of.run, of.spec, of.name + " freeze", trained);
    job.output = of.run.files().model();
    job.arguments = {"freeze", of.run.directory.string(), "--data=" + data(*of.spec)};
    add_run_fields(job, {"threads"});
    job.arguments.insert(job.arguments.end(), {"-o", job.output.string()});
    return add(std::move(job));
  }

  void evaluate(size_t frozen) {
    const Job& of = jobs_[frozen];
    Job job = made_of(Job::Kind::kEvaluate, of.run, of.spec, of.run.name + " eval", frozen);
    job.output = frozen_scores(of.run.files());
    job.arguments = {"eval", of.output.string(), "--data=" + data(*of.spec)};
    add_run_fields(job, {"threads"});
    job.arguments.emplace_back("--json");
    add(std::move(job));
  }

  void round(size_t trained) {
    const Job& of = jobs_[trained];
    Job job = made_of(Job::Kind::kRound, of.run, of.spec, of.name + " eval rounded", trained);
    job.output = rounded_scores(of.run.files());
    job.arguments = {"eval", of.run.directory.string(), "--data=" + data(*of.spec), "--binarize=round"};
    add_run_fields(job, {"device", "threads"});
    job.arguments.emplace_back("--json");
    add(std::move(job));
  }

  void time(size_t frozen) {
    const Job& of = jobs_[frozen];
    Job job = made_of(Job::Kind::kTime, of.run, of.spec, of.run.name + " bench", frozen);
    job.output = frozen_times(of.run.files());
    job.arguments = {"bench", of.output.string(), "--threads=1", "--json"};
    add(std::move(job));
  }

  static Job made_of(Job::Kind kind, const RunPlace& run, const RunSpec* spec, std::string name, size_t after) {
    Job job;
    job.kind = kind;
    job.name = std::move(name);
    job.run = run;
    job.spec = spec;
    job.log = run.log();
    job.after = {after};
    return job;
  }

  void add_run_fields(Job& job, const std::vector<std::string>& keys) const {
    for (const std::string& key : keys) {
      const auto found = options_.run_fields.find(key);
      if (found != options_.run_fields.end()) job.arguments.push_back(flag(key, found->second));
    }
  }

  const JobOptions& options_;
  std::vector<Job> jobs_;
};

}  // namespace

std::string run_stem(const RunSpec& spec) {
  std::string stem = spec.takes == Takes::kChannels ? run_stem(*spec.source) : spec.data;
  for (const NamedSetting& setting : kNamed) {
    const std::string_view value = spec.setting(setting.key);
    if (spec.takes == Takes::kChannels || value.empty() || value == setting.usual) continue;
    stem += fmt::format("-{}{}", setting.prefix, value);
  }
  if (spec.takes == Takes::kShifts) stem += "-uneven";
  // Magnitude taps always start from a dense network.
  const bool may_start_anew = spec.setting("method") != "magnitude";
  if (spec.takes == Takes::kWeights && may_start_anew) stem += fmt::format("-from-{}", spec.source->setting("method"));
  if (spec.teacher != nullptr) stem += "-taught";
  if (spec.takes == Takes::kChannels) stem += "-" + cut_name(spec.cut);
  return stem + mark(spec);
}

std::vector<RunPlace> find_runs(const fs::path& out, const std::string& stem) {
  std::vector<RunPlace> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(runs_folder(out), error)) {
    if (auto place = parse_run_name(entry.path(), stem)) {
      if (place->files().holds_run()) runs.push_back(*std::move(place));
    }
  }
  std::sort(runs.begin(), runs.end(), [](const RunPlace& a, const RunPlace& b) {
    return std::pair(a.epochs, a.seed) < std::pair(b.epochs, b.seed);
  });
  return runs;
}

std::vector<fs::path> find_logs(const fs::path& out, const std::string& stem) {
  std::vector<fs::path> logs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(runs_folder(out), error)) {
    fs::path name = entry.path();
    if (name.extension() == ".log" && parse_run_name(name.replace_extension(), stem)) logs.push_back(entry.path());
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

std::vector<RunPlace> longest_finished(const fs::path& out, const RunSpec& spec) {
  std::vector<RunPlace> longest;
  for (const RunPlace& run : find_runs(out, run_stem(spec))) {
    if (!run.files().finished()) continue;
    if (!longest.empty() && longest.front().epochs < run.epochs) longest.clear();
    longest.push_back(run);
  }
  return longest;
}

fs::path frozen_scores(const RunFiles& run) {
  return run.root / "frozen-eval.json";
}
fs::path rounded_scores(const RunFiles& run) {
  return run.root / "rounded-eval.json";
}
fs::path frozen_times(const RunFiles& run) {
  return run.root / "bench.json";
}

bool Job::is_done() const {
  if (kind == Kind::kTrain) return run.files().finished();
  if (!is_there(output) || !is_whole(output)) return false;
  return kind != Kind::kCut || is_there(output.parent_path() / "weights.safetensors");
}

bool is_chosen(const ExperimentRow& row, const std::vector<std::string>& only) {
  return only.empty() ||
         std::any_of(only.begin(), only.end(), [&](const std::string& glob) { return glob_match(glob, row.label); });
}

std::vector<Job> plan_jobs(const std::vector<const Experiment*>& chosen, const JobOptions& options) {
  Planner planner(options);
  for (const Experiment* experiment : chosen) {
    for (const ExperimentRow& row : experiment->rows) {
      if (is_chosen(row, options.only) && options.data.count(row.run.data) > 0) planner.add_row(*experiment, row);
    }
  }
  return planner.finish();
}

namespace {

// The part of a path from the last folder of runs or cuts on: where it lies in its --out.
std::string place_in_out(const std::string& path) {
  const size_t at = std::max(path.rfind("/runs/") + 1, path.rfind("/cuts/") + 1);
  return path.substr(at);
}

}  // namespace

void check_run(const Job& job) {
  const Recipe begun = job.run.files().read_config();
  for (const auto& [key, value] : job.settings) {
    // The scale of a longer one is not known to the last digit: where its learning rate drops may be off by an epoch.
    if (job.is_longer && (key == "lr_every" || key == "lr_milestones" || key == "warmup_epochs")) continue;
    const RecipeField& field = known_recipe_field(key, key);
    Recipe wanted = begun;
    set_recipe_field(wanted, field, value, key);
    const std::string now = recipe_field_text(begun, field);
    if (now == recipe_field_text(wanted, field)) continue;
    // An --out that was moved as a whole is the same one: what a finished run began from is not asked for again.
    if (job.is_done() && place_in_out(now) == place_in_out(recipe_field_text(wanted, field))) continue;
    fail_usage("[reproduce] {} was started with {} = {}, expected {}: move it away, or choose another --out",
               job.run.directory.string(), key, now.empty() ? "(unset)" : now, value);
  }
}

}  // namespace onetap
