#include "tools/onetap/sweep_results.h"

#include "onetap/base/error.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/journal/metrics.h"
#include "tools/onetap/console.h"
#include "tools/onetap/spread.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <system_error>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

using Json = nlohmann::ordered_json;
using A = Table::Align;

// What is averaged over seeds: the name in files, the title for people, and the number.
struct Measure {
  const char* name;
  const char* title;
  bool is_share;
  std::optional<double> (*of)(const RunScores& scores);

  std::string text(std::optional<double> value) const {
    if (!value) return "";
    return is_share ? percent_text(*value) : fmt::format("{:.4f}", *value);
  }
};

// A run that diverged before such losses ended it has tests without one.
std::optional<double> finite(double loss) {
  return std::isfinite(loss) ? std::optional(loss) : std::nullopt;
}

const Measure kMeasures[] = {
    {"acc_hard", "hard", true, [](const RunScores& s) { return s.acc_hard; }},
    {"best_acc_hard", "best hard", true, [](const RunScores& s) { return s.best_acc_hard; }},
    {"acc_soft", "soft", true, [](const RunScores& s) { return std::optional(s.acc_soft); }},
    {"loss", "loss", false, [](const RunScores& s) { return finite(s.loss); }},
};

const char* phase_name(RunPhase phase) {
  switch (phase) {
    case RunPhase::kWaiting:
      return "waiting";
    case RunPhase::kRunning:
      return "running";
    case RunPhase::kFinished:
      return "finished";
    case RunPhase::kFailed:
      return "failed";
    case RunPhase::kStopped:
      return "stopped";
  }
  return "";
}

Spread spread_over(const std::vector<RunResult>& rows, const std::vector<size_t>& chosen, const Measure& measure) {
  std::vector<double> values;
  for (const size_t row : chosen) {
    if (!rows[row].scores) continue;
    if (const auto value = measure.of(*rows[row].scores)) values.push_back(*value);
  }
  return spread(values);
}

bool is_seed(const GridAxis& axis) {
  return std::string_view(axis.field->key) == "seed";
}

std::string number_text(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : "";
}
Json number(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

// Numbers and switches as such, texts in quotes.
Json value_json(const RecipeField& field, const std::string& value) {
  if (field.is_quoted(value)) return value;
  return parse_json(value);
}

Table::Column key_column(const GridAxis& axis) {
  return {axis.field->key, axis.field->is_text() ? A::kLeft : A::kRight};
}

Table runs_table(const Grid& grid, const std::vector<RunResult>& rows) {
  std::vector<Table::Column> columns;
  for (const GridAxis& axis : grid) columns.push_back(key_column(axis));
  columns.push_back({"state"});
  for (const Measure& measure : kMeasures) columns.push_back({measure.title, A::kRight});
  columns.push_back({"epochs", A::kRight});
  columns.push_back({"seconds", A::kRight});
  Table table(columns);
  for (const RunResult& row : rows) {
    std::vector<std::string> cells = row.run.values;
    cells.emplace_back(phase_name(row.phase));
    for (const Measure& measure : kMeasures) cells.push_back(row.scores ? measure.text(measure.of(*row.scores)) : "");
    cells.push_back(row.scores ? fmt::format("{}", row.scores->epochs) : "");
    cells.push_back(row.scores ? fmt::format("{:.1f}", row.scores->wall_s) : "");
    table.add(std::move(cells));
  }
  return table;
}

}  // namespace

std::optional<RunScores> read_scores(const RunFiles& files) {
  RunScores scores;
  bool tested = false, chooses_elsewhere = false;
  std::error_code error;
  if (!fs::exists(files.metrics(), error)) return std::nullopt;
  try {
    for (const MetricLine& line : read_metrics(files.metrics())) {
      if (line.split == "train") continue;
      tested = true;
      // Of a run with images held out, the best epoch is theirs; the test set has the last word.
      chooses_elsewhere = chooses_elsewhere || line.split == "validation";
      const bool chooses = line.split == "validation" || !chooses_elsewhere;
      scores.acc_hard = line.acc_hard;
      if (chooses) scores.best_acc_hard = std::max(scores.best_acc_hard, line.acc_hard);
      scores.acc_soft = line.acc_soft;
      scores.loss = line.loss;
      scores.epochs = line.epoch;
      scores.step = line.step;
      scores.wall_s = line.wall_s;
    }
  } catch (const Error& problem) {
    // One damaged file must not hide what the other runs reached.
    console().warn(problem.what());
    return std::nullopt;
  }
  return tested ? std::optional(scores) : std::nullopt;
}

SweepResults::SweepResults(Grid grid, std::vector<RunResult> rows)
    : grid_(std::move(grid)), varies_seed_(std::any_of(grid_.begin(), grid_.end(), is_seed)), rows_(std::move(rows)) {
  std::remove_copy_if(grid_.begin(), grid_.end(), std::back_inserter(other_axes_), is_seed);
  for (size_t i = 0; varies_seed_ && i < rows_.size(); ++i) {
    std::vector<std::string> others;
    for (size_t axis = 0; axis < grid_.size(); ++axis) {
      if (!is_seed(grid_[axis])) others.push_back(rows_[i].run.values[axis]);
    }
    auto group =
        std::find_if(groups_.begin(), groups_.end(), [&](const SeedGroup& known) { return known.values == others; });
    if (group == groups_.end()) group = groups_.insert(groups_.end(), {others, {}});
    if (rows_[i].phase == RunPhase::kFinished) group->finished.push_back(i);
  }
}

Table SweepResults::seeds_table() const {
  std::vector<Table::Column> columns;
  for (const GridAxis& axis : other_axes_) columns.push_back(key_column(axis));
  columns.push_back({"seeds", A::kRight});
  for (const Measure& measure : kMeasures) {
    columns.push_back({measure.title, A::kRight});
    columns.push_back({"sd", A::kRight});
  }
  Table table(columns);
  for (const SeedGroup& group : groups_) {
    std::vector<std::string> cells = group.values;
    cells.push_back(fmt::format("{}", group.finished.size()));
    for (const Measure& measure : kMeasures) {
      const Spread over = spread_over(rows_, group.finished, measure);
      cells.push_back(measure.text(over.mean));
      cells.push_back(measure.text(over.sd));
    }
    table.add(std::move(cells));
  }
  return table;
}

std::string SweepResults::text() const {
  return runs_table(grid_, rows_).text() + (varies_seed_ ? "\nover seeds:\n" + seeds_table().text() : "");
}

std::string SweepResults::markdown() const {
  return runs_table(grid_, rows_).markdown() +
         (varies_seed_ ? "\nMeans and standard deviations of finished runs over seeds:\n\n" + seeds_table().markdown()
                       : "");
}

Json SweepResults::json() const {
  Json object = {{"runs", Json::array()}};
  for (const RunResult& row : rows_) {
    Json entry = {{"name", row.run.name}};
    for (size_t i = 0; i < grid_.size(); ++i) {
      entry["values"][grid_[i].field->key] = value_json(*grid_[i].field, row.run.values[i]);
    }
    entry["state"] = phase_name(row.phase);
    for (const Measure& measure : kMeasures) {
      entry[measure.name] = row.scores ? number(measure.of(*row.scores)) : Json(nullptr);
    }
    entry["epochs"] = row.scores ? Json(row.scores->epochs) : Json(nullptr);
    entry["wall_s"] = row.scores ? Json(row.scores->wall_s) : Json(nullptr);
    object["runs"].push_back(std::move(entry));
  }
  if (!varies_seed_) return object;
  object["over_seeds"] = Json::array();
  for (const SeedGroup& group : groups_) {
    Json entry = {{"values", Json::object()}, {"seeds", group.finished.size()}};
    for (size_t i = 0; i < other_axes_.size(); ++i) {
      entry["values"][other_axes_[i].field->key] = value_json(*other_axes_[i].field, group.values[i]);
    }
    for (const Measure& measure : kMeasures) {
      const Spread over = spread_over(rows_, group.finished, measure);
      entry[measure.name] = {{"mean", number(over.mean)}, {"sd", number(over.sd)}};
    }
    object["over_seeds"].push_back(std::move(entry));
  }
  return object;
}

std::string SweepResults::csv() const {
  std::string text;
  for (const GridAxis& axis : grid_) text += fmt::format("{},", axis.field->key);
  text += "state";
  for (const Measure& measure : kMeasures) text += fmt::format(",{}", measure.name);
  text += ",epochs,wall_s\n";
  for (const RunResult& row : rows_) {
    for (const std::string& value : row.run.values) text += csv_field(value) + ',';
    text += phase_name(row.phase);
    for (const Measure& measure : kMeasures) {
      text += ',' + (row.scores ? number_text(measure.of(*row.scores)) : "");
    }
    text += row.scores ? fmt::format(",{},{}\n", row.scores->epochs, row.scores->wall_s) : ",,\n";
  }
  return text;
}

std::string SweepResults::seeds_csv() const {
  std::string text;
  for (const GridAxis& axis : other_axes_) text += fmt::format("{},", axis.field->key);
  text += "seeds";
  for (const Measure& measure : kMeasures) text += fmt::format(",{0}_mean,{0}_sd", measure.name);
  text += '\n';
  for (const SeedGroup& group : groups_) {
    for (const std::string& value : group.values) text += csv_field(value) + ',';
    text += fmt::format("{}", group.finished.size());
    for (const Measure& measure : kMeasures) {
      const Spread over = spread_over(rows_, group.finished, measure);
      text += fmt::format(",{},{}", number_text(over.mean), number_text(over.sd));
    }
    text += '\n';
  }
  return text;
}

void SweepResults::write(const fs::path& directory) const {
  write_file_atomic(directory / "results.csv", csv());
  write_file_atomic(directory / "results.md", markdown());
  if (varies_seed_) write_file_atomic(directory / "results-over-seeds.csv", seeds_csv());
}

}  // namespace onetap::tool
