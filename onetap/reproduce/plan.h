// From experiments to jobs: commands of this program, each with a folder, some of them after others.
//
//   OUT/runs/NAME       run directories, shared by all experiments
//   OUT/runs/NAME.log   what their commands wrote
//   OUT/cuts/NAME       networks that channel pruning has made
//   OUT/EXPERIMENT      results
#pragma once

#include "onetap/journal/run_files.h"
#include "onetap/reproduce/experiment.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

// The name of a run without its length and its seed: what is trained, on what, how.
std::string run_stem(const RunSpec& spec);

// A run directory of a reproduction.
struct RunPlace {
  std::string name;  // STEM-e300-s0
  std::filesystem::path directory;
  int64_t epochs = 0;
  uint64_t seed = 0;

  RunFiles files() const { return RunFiles(directory); }
  std::filesystem::path log() const { return directory.parent_path() / (name + ".log"); }
};

// All runs of a stem that are there, begun or finished.
std::vector<RunPlace> find_runs(const std::filesystem::path& out, const std::string& stem);
// What the commands of its runs wrote, also where no run came of it: a training that failed at once.
std::vector<std::filesystem::path> find_logs(const std::filesystem::path& out, const std::string& stem);
// Those of the longest schedule that any has finished; of equal length, so that they can be averaged. Seeds ascend.
std::vector<RunPlace> longest_finished(const std::filesystem::path& out, const RunSpec& spec);

struct Job {
  enum class Kind { kTrain, kCut, kFreeze, kEvaluate, kRound, kTime };

  Kind kind = Kind::kTrain;
  std::string name;  // of the run, or of what is made of it: "NAME freeze"
  RunPlace run;
  const RunSpec* spec = nullptr;       // of the run
  Settings settings;                   // of a training, as it is told
  std::vector<std::string> arguments;  // after the program's name
  std::filesystem::path log;
  std::filesystem::path output;  // stdout goes there once the command has succeeded; none if empty
  std::vector<size_t> after;     // jobs that must be done first
  int64_t steps = 0;             // of a training
  bool is_longer = false;        // a training that has finished in more epochs than were asked for

  // True once its result is there: a repeated call passes it over.
  bool is_done() const;
};

// What a job makes beside the run directory's own files.
std::filesystem::path frozen_scores(const RunFiles& run);   // eval of model.tap
std::filesystem::path rounded_scores(const RunFiles& run);  // eval of the run with P > 0.5
std::filesystem::path frozen_times(const RunFiles& run);    // bench of model.tap

struct JobOptions {
  std::filesystem::path out;
  std::map<std::string, std::string> data;  // by the names of experiment_data(): what --data says
  std::vector<uint64_t> seeds = {0};
  double scale = 1;
  std::vector<std::string> only;                  // globs: rows with such a label; all if empty
  std::map<std::string, std::string> run_fields;  // of recipes, for every training: device, precision, threads ...
};

bool is_chosen(const ExperimentRow& row, const std::vector<std::string>& only);

// In an order in which they can be done one after another; what several rows need is there once. Rows without data are
// left out. A row whose run has finished in this length or a longer one needs no other.
std::vector<Job> plan_jobs(const std::vector<const Experiment*>& chosen, const JobOptions& options);

// kUsage if what lies in the job's run directory is another training than the job's.
void check_run(const Job& job);

}  // namespace onetap
