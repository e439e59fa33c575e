// What the runs of a sweep reached, as tables and files.
#pragma once

#include "onetap/journal/run_files.h"
#include "tools/onetap/sweep_plan.h"
#include "tools/onetap/table.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

// What the metrics of a run say, up to its last test.
struct RunScores {
  std::optional<double> acc_hard;
  std::optional<double> best_acc_hard;
  double acc_soft = 0;
  double loss = 0;
  int64_t epochs = 0;
  int64_t step = 0;
  double wall_s = 0;
};

// Nothing if no test is on record.
std::optional<RunScores> read_scores(const RunFiles& files);

enum class RunPhase { kWaiting, kRunning, kFinished, kFailed, kStopped };

struct RunResult {
  SweepRun run;
  RunPhase phase = RunPhase::kWaiting;
  std::optional<RunScores> scores;
};

class SweepResults {
 public:
  SweepResults(Grid grid, std::vector<RunResult> rows);

  // For people. A second table has means and deviations of the finished runs that differ in their seed alone.
  std::string text() const;
  std::string markdown() const;
  nlohmann::ordered_json json() const;

  // results.csv, results.md and, where seeds are varied, results-over-seeds.csv.
  void write(const std::filesystem::path& directory) const;

 private:
  // Runs alike but for the seed; indices into rows_.
  struct SeedGroup {
    std::vector<std::string> values;  // of the other axes
    std::vector<size_t> finished;
  };

  Table seeds_table() const;
  std::string csv() const;
  std::string seeds_csv() const;

  Grid grid_;
  Grid other_axes_;  // all but the seed
  bool varies_seed_;
  std::vector<RunResult> rows_;
  std::vector<SeedGroup> groups_;  // none unless seeds are varied
};

}  // namespace onetap::tool
