// What the runs of an experiment reached, beside what was published: tables, a figure, a page.
#pragma once

#include "onetap/reproduce/plan.h"
#include "tools/onetap/spread.h"
#include "tools/onetap/table.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

struct RowResult {
  const ExperimentRow* row = nullptr;
  std::string state;           // "finished", "unfinished: ...", "failed: ...", "not trained", "no data"
  std::vector<RunPlace> runs;  // the longest finished ones, one a seed
  int64_t epochs = 0;          // of theirs; 0 without any
  int64_t full_epochs = 0;     // of the whole schedule

  // Accuracies in percent, over the runs.
  Spread accuracy;      // of the network with its kept taps alone
  Spread rounded;       // with P > 0.5 instead
  Spread frozen;        // of the .tap file by the CPU runtime
  Spread milliseconds;  // of an image, one thread
  std::optional<double> file_bytes;
  std::optional<double> params, macs, activations;

  std::optional<double> memory() const;
};

class ExperimentResults {
 public:
  // By what lies in `out`; `has_data` tells which data sets could be trained on.
  ExperimentResults(const Experiment& experiment, const std::filesystem::path& out,
                    const std::map<std::string, std::string>& data);

  const Experiment& experiment() const { return experiment_; }
  const std::vector<RowResult>& rows() const { return rows_; }

  // A table for each data set, with its name.
  std::vector<std::pair<std::string, Table>> tables() const;
  std::string text() const;
  std::string markdown() const;
  std::string csv() const;
  nlohmann::ordered_json json() const;

  // Sentences about how to read the numbers: lengths of schedules, rows that are missing, notes of rows.
  std::vector<std::string> remarks() const;

  // results.md, results.csv, results.json, figure.svg, index.html and, where runs are there, runs.html.
  void write() const;

  std::filesystem::path folder() const { return out_ / experiment_.name; }

 private:
  const Experiment& experiment_;
  std::filesystem::path out_;
  std::vector<RowResult> rows_;
};

// The paper's figure with its points and ours.
std::string results_figure(const ExperimentResults& results);

// One page with tables, figure and links. It is self-contained.
std::string results_page(const ExperimentResults& results, const std::string& figure, bool links_runs);

}  // namespace onetap::tool
