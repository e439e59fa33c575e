#include "tools/onetap/reproduce_results.h"

#include "onetap/base/error.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/report/page.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/last_words.h"
#include "tools/onetap/optional_number.h"
#include "tools/onetap/sweep_results.h"

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

// A number from 0 to `most` in a file that another verb printed; nothing if it is not there, or not that.
std::optional<double> number_in(const fs::path& path, const char* key, const char* form, double most) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    const nlohmann::json content = parse_json(read_file(path, 1u << 24));
    const auto rows = content.is_array() ? content : nlohmann::json::array({content});
    for (const auto& row : rows) {
      if (!row.is_object() || (form != nullptr && row.value("form", "") != form)) continue;
      const auto found = row.find(key);
      if (found == row.end() || !found->is_number()) continue;
      const auto number = found->get<double>();
      if (number >= 0 && number <= most) return number;
      console().warn(fmt::format("[reproduce] expected '{}' in 0..{}, got {} ({})", key, most, number, path.string()));
      return std::nullopt;
    }
    console().warn(fmt::format("[reproduce] expected '{}', got none ({})", key, path.string()));
  } catch (const Error& problem) {
    console().warn(problem.what());
  } catch (const nlohmann::json::exception& problem) {
    console().warn(fmt::format("[reproduce] expected numbers, got {} ({})", problem.what(), path.string()));
  }
  return std::nullopt;
}

std::optional<double> times_100(std::optional<double> share) {
  return share ? std::optional(percent(*share)) : std::nullopt;
}

template <typename Of>
Spread spread_of(const std::vector<RunPlace>& runs, Of&& of) {
  std::vector<double> values;
  for (const RunPlace& run : runs) {
    if (const std::optional<double> value = of(run.files())) values.push_back(*value);
  }
  return spread(values);
}

std::optional<double> accuracy_of(const RunFiles& run) {
  const auto scores = read_scores(run);
  return scores ? std::optional(percent(scores->acc_hard.value_or(scores->acc_soft))) : std::nullopt;
}

std::optional<double> bytes_of_model(const RunFiles& run) {
  std::error_code error;
  if (!fs::exists(run.model(), error)) return std::nullopt;
  try {
    read_tap(run.model());
    return static_cast<double>(fs::file_size(run.model()));
  } catch (const Error& problem) {
    console().warn(problem.what());
    return std::nullopt;
  }
}

// Of the network that was trained, if there is one: channel pruning makes it on the way.
std::optional<NetworkCount> counts_of(const ExperimentRow& row, const std::vector<RunPlace>& runs) {
  try {
    if (row.run.takes != RunSpec::Takes::kChannels) return experiment_counts(row.run);
    if (!runs.empty()) return count_network(runs.front().files().read_graph(), CountRules::kPaper);
  } catch (const Error& problem) {
    console().warn(fmt::format("{} ({})", problem.what(), row.label));
  }
  return std::nullopt;
}

// "" unless the commands of a run ended with an error: what they wrote last says so. A run that was stopped says that.
std::string failure_in(const fs::path& log) {
  const std::string last = last_words(log);
  return last.rfind("onetap: ", 0) == 0 ? fmt::format("runs/{}", log.filename().string()) : "";
}

std::string state_of(const fs::path& out, const ExperimentRow& row, const std::vector<RunPlace>& finished,
                     const std::map<std::string, std::string>& data) {
  if (!finished.empty()) return "finished";
  const auto begun = find_runs(out, run_stem(row.run));
  if (!begun.empty()) {
    const auto scores = read_scores(begun.back().files());
    const std::string log = failure_in(begun.back().log());
    const std::string epochs = fmt::format("{} of {} epochs", scores ? scores->epochs : 0, begun.back().epochs);
    return log.empty() ? "unfinished: " + epochs : fmt::format("failed after {}: see {}", epochs, log);
  }
  for (const fs::path& log : find_logs(out, run_stem(row.run))) {
    if (const std::string failed = failure_in(log); !failed.empty()) return "failed: see " + failed;
  }
  return data.count(row.run.data) == 0 ? "no data" : "not trained";
}

RowResult read_row(const ExperimentRow& row, const fs::path& out, const std::map<std::string, std::string>& data) {
  RowResult result;
  result.row = &row;
  result.runs = longest_finished(out, row.run);
  result.state = state_of(out, row, result.runs, data);
  result.epochs = result.runs.empty() ? 0 : result.runs.front().epochs;
  result.full_epochs = experiment_recipe(row.run, 1).epochs;
  result.accuracy = spread_of(result.runs, accuracy_of);
  result.rounded = spread_of(result.runs, [](const RunFiles& run) {
    return times_100(number_in(rounded_scores(run), "accuracy", "round", 1));
  });
  result.frozen = spread_of(result.runs, [](const RunFiles& run) {
    return times_100(number_in(frozen_scores(run), "accuracy", "frozen", 1));
  });
  constexpr double kHour = 3.6e6;  // milliseconds
  result.milliseconds = spread_of(
      result.runs, [](const RunFiles& run) { return number_in(frozen_times(run), "median_ms", nullptr, kHour); });
  result.file_bytes = spread_of(result.runs, bytes_of_model).mean;
  if (const auto counts = counts_of(row, result.runs)) {
    result.params = counts->params;
    result.macs = counts->macs;
    result.activations = counts->activations;
  }
  return result;
}

std::string published_accuracy(std::optional<double> value) {
  return value ? fmt::format("{:.2f} %", *value) : "";
}
std::string count_text(std::optional<double> value) {
  return value ? with_thousands(*value) : "";
}
// In millions where it is printed so; the figure of memory has every digit.
std::string published_count(std::optional<double> value) {
  constexpr int64_t kPrinted = 10000;
  if (!value || std::llround(*value) % kPrinted != 0) return count_text(value);
  return fmt::format("{:.4g} M", *value / 1e6);
}

std::string epochs_text(const RowResult& row) {
  if (row.epochs == 0) return fmt::format("0/{}", row.full_epochs);
  return fmt::format("{}/{}", row.epochs, row.full_epochs);
}

// The data sets of an experiment, in the order of its rows.
std::vector<std::string> data_names(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const ExperimentRow& row : experiment.rows) {
    if (std::find(names.begin(), names.end(), row.run.data) == names.end()) names.push_back(row.run.data);
  }
  return names;
}

// A column of a table for people. Those that nothing was published for, or that the experiment does not measure, are
// left out.
struct Column {
  const char* title;
  A align;
  bool shown;
  std::string (*text)(const RowResult& row);
};

std::vector<Column> columns_of(const Experiment& experiment) {
  const auto any = [&](auto&& has) { return std::any_of(experiment.rows.begin(), experiment.rows.end(), has); };
  const bool accuracy = any([](const ExperimentRow& row) { return row.published.accuracy.has_value(); });
  const bool params = any([](const ExperimentRow& row) { return row.published.params.has_value(); });
  const bool macs = any([](const ExperimentRow& row) { return row.published.macs.has_value(); });
  return {
      {"kind", A::kLeft, true, [](const RowResult& r) { return r.row->group; }},
      {"network", A::kLeft, true, [](const RowResult& r) { return r.row->label; }},
      {"accuracy", A::kRight, true, [](const RowResult& r) { return accuracy_text(r.accuracy); }},
      {"rounded", A::kRight, experiment.rounds, [](const RowResult& r) { return accuracy_text(r.rounded); }},
      {"published", A::kRight, accuracy,
       [](const RowResult& r) { return published_accuracy(r.row->published.accuracy); }},
      {"params", A::kRight, true, [](const RowResult& r) { return count_text(r.params); }},
      {"published", A::kRight, params, [](const RowResult& r) { return published_count(r.row->published.params); }},
      {"memory", A::kRight, experiment.figure == FigureKind::kMemory,
       [](const RowResult& r) { return count_text(r.memory()); }},
      {"MACs", A::kRight, true, [](const RowResult& r) { return count_text(r.macs); }},
      {"published", A::kRight, macs, [](const RowResult& r) { return published_count(r.row->published.macs); }},
      {"frozen", A::kRight, experiment.freezes, [](const RowResult& r) { return accuracy_text(r.frozen); }},
      {"bytes", A::kRight, experiment.freezes, [](const RowResult& r) { return count_text(r.file_bytes); }},
      {"ms", A::kRight, experiment.times,
       [](const RowResult& r) { return r.milliseconds.mean ? fmt::format("{:.2f}", *r.milliseconds.mean) : ""; }},
      {"seeds", A::kRight, true,
       [](const RowResult& r) { return r.runs.empty() ? "" : fmt::format("{}", r.runs.size()); }},
      {"epochs", A::kRight, true, epochs_text},
      {"state", A::kLeft, true, [](const RowResult& r) { return r.state; }},
  };
}

Json spread_json(const Spread& values) {
  return {{"mean", json_number(values.mean)}, {"sd", json_number(values.sd)}};
}

}  // namespace

std::optional<double> RowResult::memory() const {
  return params && activations ? std::optional(*params + *activations) : std::nullopt;
}

ExperimentResults::ExperimentResults(const Experiment& experiment, const fs::path& out,
                                     const std::map<std::string, std::string>& data)
    : experiment_(experiment), out_(out) {
  for (const ExperimentRow& row : experiment.rows) rows_.push_back(read_row(row, out, data));
}

std::vector<std::pair<std::string, Table>> ExperimentResults::tables() const {
  std::vector<std::pair<std::string, Table>> list;
  const std::vector<Column> columns = columns_of(experiment_);
  for (const std::string& data : data_names(experiment_)) {
    std::vector<Table::Column> titles;
    for (const Column& column : columns) {
      if (column.shown) titles.push_back({column.title, column.align});
    }
    Table table(titles);
    for (const RowResult& row : rows_) {
      if (row.row->run.data != data) continue;
      std::vector<std::string> cells;
      for (const Column& column : columns) {
        if (column.shown) cells.push_back(column.text(row));
      }
      table.add(std::move(cells));
    }
    list.emplace_back(experiment_data(data).title, std::move(table));
  }
  return list;
}

std::vector<std::string> ExperimentResults::remarks() const {
  std::vector<std::string> list = {
      "Accuracy: on the test set after the last epoch, with the kept taps only; mean ± standard deviation if there is "
      "more than one seed. Parameters (32-bit words) and MACs are counted by the paper's rules."};
  const auto shortened = std::count_if(
      rows_.begin(), rows_.end(), [](const RowResult& row) { return row.epochs > 0 && row.epochs < row.full_epochs; });
  if (shortened > 0) {
    list.push_back(
        fmt::format("Shortened: {} of {} rows were trained for fewer epochs than the whole schedule ('epochs': "
                    "ours/whole).",
                    shortened, rows_.size()));
  }
  if (experiment_.rounds) list.emplace_back("Rounded: taps with P > 0.5 are kept, as in the paper's figure.");
  if (experiment_.freezes) list.emplace_back("Frozen: the .tap file, run by the CPU runtime.");
  if (experiment_.times) list.emplace_back("ms: the .tap file, run by the CPU runtime, one image, one thread, median.");
  for (const RowResult& row : rows_) {
    const std::string note = row.row->note.empty() ? "" : fmt::format("{}: {}.", row.row->label, row.row->note);
    if (!note.empty() && std::find(list.begin(), list.end(), note) == list.end()) list.push_back(note);
  }
  return list;
}

std::string ExperimentResults::text() const {
  std::string text = experiment_.title + '\n';
  for (const auto& [data, table] : tables()) text += fmt::format("\n{}\n{}", data, table.text());
  return text;
}

std::string ExperimentResults::markdown() const {
  std::string text = fmt::format("# {}\n\n`onetap reproduce {}`\n", experiment_.title, experiment_.name);
  for (const auto& [data, table] : tables()) text += fmt::format("\n## {}\n\n{}", data, table.markdown());
  text += "\n![figure](figure.svg)\n\n";
  for (const std::string& remark : remarks()) text += fmt::format("- {}\n", remark);
  return text;
}

std::string ExperimentResults::csv() const {
  std::string text =
      "data,kind,network,state,accuracy_mean,accuracy_sd,accuracy_published,rounded_mean,rounded_sd,frozen_mean,"
      "frozen_sd,params,params_published,macs,macs_published,activations,file_bytes,milliseconds,seeds,epochs,"
      "epochs_full,run\n";
  for (const RowResult& row : rows_) {
    const Published& published = row.row->published;
    text += fmt::format("{},{},{},{}", row.row->run.data, csv_field(row.row->group), csv_field(row.row->label),
                        csv_field(row.state));
    for (const auto& value : {row.accuracy.mean, row.accuracy.sd, published.accuracy, row.rounded.mean, row.rounded.sd,
                              row.frozen.mean, row.frozen.sd, row.params, published.params, row.macs, published.macs,
                              row.activations, row.file_bytes, row.milliseconds.mean}) {
      text += ',' + csv_number(value);
    }
    text += fmt::format(",{},{},{},{}\n", row.runs.size(), row.epochs, row.full_epochs, run_stem(row.row->run));
  }
  return text;
}

Json ExperimentResults::json() const {
  Json object = {{"experiment", experiment_.name}, {"title", experiment_.title}, {"rows", Json::array()}};
  for (const RowResult& row : rows_) {
    const Published& published = row.row->published;
    Json runs = Json::array();
    for (const RunPlace& run : row.runs) {
      runs.push_back({{"run", run.name}, {"seed", run.seed}, {"accuracy", json_number(accuracy_of(run.files()))}});
    }
    object["rows"].push_back({{"data", row.row->run.data},
                              {"kind", row.row->group},
                              {"network", row.row->label},
                              {"state", row.state},
                              {"accuracy", spread_json(row.accuracy)},
                              {"rounded", spread_json(row.rounded)},
                              {"frozen", spread_json(row.frozen)},
                              {"params", json_number(row.params)},
                              {"macs", json_number(row.macs)},
                              {"activations", json_number(row.activations)},
                              {"file_bytes", json_number(row.file_bytes)},
                              {"milliseconds", json_number(row.milliseconds.mean)},
                              {"published",
                               {{"accuracy", json_number(published.accuracy)},
                                {"params", json_number(published.params)},
                                {"macs", json_number(published.macs)}}},
                              {"epochs", row.epochs},
                              {"epochs_full", row.full_epochs},
                              {"runs", std::move(runs)},
                              {"note", row.row->note}});
  }
  return object;
}

void ExperimentResults::write() const {
  std::vector<ReportRun> runs;
  std::vector<std::string> known;
  for (const RowResult& row : rows_) {
    for (const RunPlace& run : row.runs) {
      if (std::find(known.begin(), known.end(), run.name) != known.end()) continue;
      known.push_back(run.name);
      try {
        runs.push_back(read_report_run(run.directory));
        runs.back().label = run.name;
      } catch (const Error& problem) {
        console().warn(problem.what());
      }
    }
  }
  make_directories(folder());
  const std::string figure = results_figure(*this);
  write_file_atomic(folder() / "results.csv", csv());
  write_file_atomic(folder() / "results.json", json_text(json(), 2) + '\n');
  write_file_atomic(folder() / "figure.svg", figure);
  if (!runs.empty()) write_file_atomic(folder() / "runs.html", report_page(runs));
  write_file_atomic(folder() / "index.html", results_page(*this, figure, !runs.empty()));
  write_file_atomic(folder() / "results.md", markdown());
}

}  // namespace onetap::tool
