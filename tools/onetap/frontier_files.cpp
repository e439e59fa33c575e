// What `onetap frontier` prints and writes.
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/kernels/kernel_set.h"
#include "tools/onetap/frontier_freeze.h"
#include "tools/onetap/frontier_results.h"
#include "tools/onetap/optional_number.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/plain_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTitle = "Accuracy against cost";
constexpr const char* kEqualTitle = "at equal accuracy";

// Files in the directory of the results, beside the page and the figures.
constexpr const char* kPoints = "frontier.csv";
struct ResultFile {
  const char* name;
  std::string (*text)(const FrontierResults& results);
};
constexpr ResultFile kResultFiles[] = {
    {"frontier.md", [](const FrontierResults& results) { return results.markdown(); }},
    {kPoints, [](const FrontierResults& results) { return results.csv(); }},
    {"equal-accuracy.csv", [](const FrontierResults& results) { return results.equal_csv(); }},
    {"frontier.json", [](const FrontierResults& results) { return json_text(results.json(), 2) + '\n'; }}};

std::string figure_end(const CostMeasure& measure) {
  return fmt::format("-{}.svg", measure.key);
}

std::string figure_name(const FrontierData& data, const CostMeasure& measure) {
  return data.file_name + figure_end(measure);
}

// A name that a figure has, of whatever data.
bool is_figure_name(const std::string& name) {
  return std::any_of(cost_measures().begin(), cost_measures().end(), [&](const CostMeasure& measure) {
    const std::string end = figure_end(measure);
    return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  });
}

bool is_points_file(const fs::path& path, const FrontierOptions& options) {
  return full_path(path) == full_path(fs::path(options.out) / kPoints);
}

// Whether another result than the points has that place, or the folder of the results or one around it.
bool is_taken(const fs::path& path, const FrontierOptions& options) {
  const fs::path whole = full_path(path), out = full_path(fs::path(options.out) / "").parent_path();
  if (std::mismatch(whole.begin(), whole.end(), out.begin(), out.end()).first == whole.end()) return true;
  if (whole == full_path(options.page_place())) return true;
  if (whole.parent_path() != out || is_points_file(path, options)) return false;
  const std::string name = whole.filename().string();
  return name == kFrozenRuns || is_figure_name(name) ||
         std::any_of(std::begin(kResultFiles), std::end(kResultFiles),
                     [&](const ResultFile& file) { return name == file.name; });
}

const char* place_name(CostAt::Place place) {
  switch (place) {
    case CostAt::Place::kInside:
      return "interpolated";
    case CostAt::Place::kBelow:
      return "upper bound";
    case CostAt::Place::kAbove:
      return "not reached";
    case CostAt::Place::kNone:
      return "unknown";
  }
  return "";
}

// Nothing where it is not known.
std::optional<double> known_cost(const CostAt& at) {
  const bool known = at.place == CostAt::Place::kInside || at.place == CostAt::Place::kBelow;
  return known ? std::optional(at.cost) : std::nullopt;
}
std::optional<double> known_ratio(const CostAt& at, std::optional<double> dense) {
  const auto cost = known_cost(at);
  return cost && dense && *dense > 0 ? std::optional(*cost / *dense) : std::nullopt;
}

Json point_json(const FrontierKind& kind, size_t i) {
  const FrontierPoint& point = *kind.points[i];
  Json front = Json::array();
  for (size_t m = 0; m < cost_measures().size(); ++m) {
    if (kind.is_on_front(i, m)) front.push_back(cost_measures()[m].key);
  }
  return {{"name", point.name},
          {"network", point.network},
          {"kind", kind.name},
          {"type", point.type},
          {"run_by", point.run_by},
          {"file", point.file.string()},
          {"accuracy", point.accuracy},
          {"accuracy_sd", json_number(point.accuracy_sd)},
          {"accuracy_of", point.accuracy_of},
          {"seeds", point.seeds},
          {"milliseconds", point.milliseconds.median},
          {"p10_ms", point.milliseconds.p10},
          {"p90_ms", point.milliseconds.p90},
          {"bytes", json_number(point.bytes)},
          {"macs", json_number(point.macs)},
          {"weights", json_number(point.weights)},
          {"memory", json_number(point.memory)},
          {"on_front", std::move(front)}};
}

Json equal_json(const EqualAccuracy& row) {
  Json object = {{"dense", row.dense->name}, {"accuracy", row.dense->accuracy}, {"kind", row.kind->name}};
  for (size_t m = 0; m < cost_measures().size(); ++m) {
    const CostMeasure& measure = cost_measures()[m];
    object[measure.key] = {{"place", place_name(row.costs[m].place)},
                           {"cost", json_number(known_cost(row.costs[m]))},
                           {"ratio", json_number(known_ratio(row.costs[m], measure.of(*row.dense)))}};
  }
  if (row.peer_milliseconds) {
    object["onnxruntime_milliseconds"] = *row.peer_milliseconds;
    object["milliseconds_ratio_to_onnxruntime"] = json_number(known_ratio(row.costs.front(), row.peer_milliseconds));
  }
  return object;
}

// In place of a table without rows.
std::string why_not_equal(const FrontierData& data) {
  const bool has_dense = !data.kinds.empty() && data.kinds.front().is_dense;
  return has_dense ? "Dense networks only: there is nothing to compare with them."
                   : "No dense network to compare with.";
}

}  // namespace

FrontierResults::FrontierResults(std::vector<FrontierPoint> points, const FrontierOptions& options)
    : points_(std::move(points)), options_(options), data_(group_by_data(points_)) {}

std::vector<std::string> FrontierResults::remarks() const {
  std::vector<std::string> list = {
      fmt::format("ms: one image, {} thread{}, kernels for {}; median, all networks in turns within one run.",
                  options_.threads, options_.threads == 1 ? "" : "s", find_kernels().name),
      "bytes: of the .tap file. MACs: for one image, kept taps only. memory: what the runtime needs: packed weights, "
      "activations and scratch.",
      "of: 'file' is the frozen file, tested here; 'run' is the last hard accuracy that the run recorded; 'quantize' "
      "is the accuracy that this verb measured for the int8 file.",
      "Equal accuracy: the front of a kind is interpolated at the accuracy of each dense network (the logarithm of the "
      "cost is linear between two points). Each cell has the ratio to the dense network's cost and, in brackets, the "
      "cost. '≤': the cheapest network of the kind is more accurate. 'not reached': none is as accurate."};
  const bool has_seeds =
      std::any_of(points_.begin(), points_.end(), [](const FrontierPoint& point) { return point.seeds > 1; });
  if (has_seeds) list.emplace_back("Runs that differ only in their seed are one point: mean ± standard deviation.");
  std::set<std::string> calibrated_on;
  for (const FrontierPoint& point : points_) {
    if (!point.calibrated_on.empty()) calibrated_on.insert(point.calibrated_on);
  }
  if (!calibrated_on.empty()) {
    list.push_back(
        fmt::format("int8 by ONNX Runtime: it quantizes the same network of floats itself (QDQ, static, weights per "
                    "output channel, calibrated on {}). The accuracy shown is that of onetap's int8 file.",
                    join({calibrated_on.begin(), calibrated_on.end()}, ", ")));
  }
  return list;
}

std::string FrontierResults::text() const {
  std::string text;
  for (const FrontierData& data : data_) {
    const std::string name = printable(data.name);
    text += fmt::format("{}{}\n{}\n", text.empty() ? "" : "\n", name, data.points_table().text());
    text += data.equal.empty() ? why_not_equal(data) + '\n'
                               : fmt::format("{}, {}\n{}", name, kEqualTitle, data.equal_table().text());
  }
  return text;
}

std::string FrontierResults::markdown() const {
  std::string text = fmt::format("# {}\n", kTitle);
  for (const FrontierData& data : data_) {
    text += fmt::format("\n## {}\n\n{}", data.name, data.points_table().markdown());
    text += fmt::format("\n## {}, {}\n\n{}", data.name, kEqualTitle,
                        data.equal.empty() ? why_not_equal(data) + '\n' : data.equal_table().markdown());
    for (const CostMeasure& measure : cost_measures()) {
      text += fmt::format("\n![{}: accuracy against {}]({})\n", data.name, measure.axis, figure_name(data, measure));
    }
  }
  text += '\n';
  for (const std::string& remark : remarks()) text += fmt::format("- {}\n", remark);
  return text;
}

std::string FrontierResults::csv() const {
  std::string text =
      "data,name,network,kind,run_by,accuracy,accuracy_sd,accuracy_of,seeds,milliseconds,p10_ms,p90_ms,bytes,macs,"
      "weights,memory";
  for (const CostMeasure& measure : cost_measures()) text += fmt::format(",on_front_{}", measure.key);
  text += '\n';
  for (const FrontierData& data : data_) {
    for (const FrontierKind& kind : data.kinds) {
      for (size_t i = 0; i < kind.points.size(); ++i) {
        const FrontierPoint& point = *kind.points[i];
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(data.name), csv_field(point.name),
                            csv_field(point.network), csv_field(kind.name), csv_field(point.run_by), point.accuracy,
                            csv_number(point.accuracy_sd), point.accuracy_of, point.seeds, point.milliseconds.median,
                            point.milliseconds.p10, point.milliseconds.p90);
        for (const auto& value : {point.bytes, point.macs, point.weights, point.memory})
          text += ',' + csv_number(value);
        for (size_t m = 0; m < cost_measures().size(); ++m) text += kind.is_on_front(i, m) ? ",1" : ",0";
        text += '\n';
      }
    }
  }
  return text;
}

std::string FrontierResults::equal_csv() const {
  std::string text = "data,dense,accuracy,kind,measure,place,dense_cost,cost,ratio\n";
  for (const FrontierData& data : data_) {
    for (const EqualAccuracy& row : data.equal) {
      for (size_t m = 0; m < cost_measures().size(); ++m) {
        const CostMeasure& measure = cost_measures()[m];
        const auto dense = measure.of(*row.dense);
        text += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_field(data.name), csv_field(row.dense->name),
                            row.dense->accuracy, csv_field(row.kind->name), measure.key, place_name(row.costs[m].place),
                            csv_number(dense), csv_number(known_cost(row.costs[m])),
                            csv_number(known_ratio(row.costs[m], dense)));
      }
    }
  }
  return text;
}

Json FrontierResults::json() const {
  Json object = {{"target", find_kernels().name}, {"threads", options_.threads}, {"data", Json::array()}};
  for (const FrontierData& data : data_) {
    Json points = Json::array(), equal = Json::array();
    for (const FrontierKind& kind : data.kinds) {
      for (size_t i = 0; i < kind.points.size(); ++i) points.push_back(point_json(kind, i));
    }
    for (const EqualAccuracy& row : data.equal) equal.push_back(equal_json(row));
    object["data"].push_back(
        {{"name", data.name}, {"points", std::move(points)}, {"equal_accuracy", std::move(equal)}});
  }
  return object;
}

std::string FrontierResults::page() const {
  std::string page = page_start(kTitle, "onetap frontier");
  for (const FrontierData& data : data_) {
    page += page_section(data.name, page_table(data.points_table()));
    page += page_section(fmt::format("{}, {}", data.name, kEqualTitle),
                         data.equal.empty() ? page_list({why_not_equal(data)}) : page_table(data.equal_table()));
    std::string figures;
    for (size_t m = 0; m < cost_measures().size(); ++m) figures += page_figure(data.figure(m));
    page += page_section(data.name + ", figures", fmt::format("<div class=\"figures\">{}</div>", figures));
  }
  page += page_section("Notes", page_list(remarks()));
  std::string files = "<ul>\n";
  for (const ResultFile& file : kResultFiles) {
    const fs::path target = options_.page.empty() ? fs::path(file.name) : fs::path(options_.out).filename() / file.name;
    files += fmt::format("<li>{}</li>\n", page_link(target.string(), file.name));
  }
  return page + page_section("Files", files + "</ul>") + page_end();
}

void check_csv(const FrontierOptions& options) {
  if (options.csv.empty()) return;
  const fs::path csv = options.csv, out = full_path(fs::path(options.out) / "").parent_path();
  if (!csv.lexically_normal().has_filename()) {
    fail_usage("[frontier] expected a file for --csv, got the folder {}", options.csv);
  }
  std::error_code ignored;
  if (full_path(csv).parent_path() != out || fs::is_directory(out, ignored)) check_output_file("frontier", csv);
  if (is_taken(csv, options)) {
    fail_usage("[frontier] expected a name for --csv that no other result has, got {}", options.csv);
  }
}

// All of the results or none: those of two measurements do not belong together.
void FrontierResults::write() const {
  const fs::path directory = options_.out;
  std::vector<std::pair<fs::path, std::string>> results;
  for (const ResultFile& file : kResultFiles) results.emplace_back(directory / file.name, file.text(*this));
  results.emplace_back(options_.page_place(), page());
  for (const FrontierData& data : data_) {
    for (size_t m = 0; m < cost_measures().size(); ++m) {
      results.emplace_back(directory / figure_name(data, cost_measures()[m]), data.figure(m));
    }
  }
  if (!options_.csv.empty() && !is_points_file(options_.csv, options_)) results.emplace_back(options_.csv, csv());
  std::vector<WholeFile> files;
  for (const auto& [path, text] : results) files.push_back({path, text});
  make_directories(directory);
  write_files_atomic(files);
}

}  // namespace onetap::tool
