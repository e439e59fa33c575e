// Every row of counts.csv: the networks of the paper's tables and figures, with what they cost by its rules.
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/count/count.h"
#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/zoo/zoo.h"
#include "tests/count/pruned_resnet56.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>

namespace onetap {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<Row> read_rows() {
  const std::string text = read_file(ONETAP_COUNTS, 1u << 20);
  std::vector<Row> rows;
  std::vector<std::string_view> header;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const std::vector<std::string_view> cells = split(trim(line), ',');
    if (header.empty()) {
      header = cells;
      continue;
    }
    Row row;
    for (size_t i = 0; i < header.size(); ++i) row[std::string(header[i])] = std::string(cells.at(i));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<double> number_in(const Row& row, const std::string& column) {
  return row.at(column).empty() ? std::nullopt : std::optional<double>(std::stod(row.at(column)));
}

// Half of the last digit that is not a zero: of figures that are printed rounded.
double half_of_last_digit(double value) {
  double digit = 1;
  while (std::fmod(value, digit * 10) == 0) digit *= 10;
  return digit / 2;
}

void give_method(Graph& graph, const std::string& method) {
  const std::string taps = "sal taps=";
  if (method.rfind(taps, 0) == 0) return apply_method(graph, sal_method(std::stoll(method.substr(taps.size()))), "");
  // The networks of these rows have their shifts by themselves.
  if (method == "conv" || method == "fixed-shift" || method == "active-shift") return;
  if (method != "bc" && method != "bwn") throw std::runtime_error("no such method: " + method);
  apply_method(graph, Method(method), "");
}

Graph network_of(const Row& row) {
  if (row.at("method") == "l1-filter-pruning") return testing::pruned_b();
  NetSpec spec;
  const std::vector<std::string_view> words = split(row.at("network"), ' ');
  spec.arch = std::string(words.at(0));
  if (words.size() == 2 && words[1].substr(0, 2) == "E=") spec.expansion = std::stoll(std::string(words[1].substr(2)));
  if (const auto width = number_in(row, "width")) spec.width = static_cast<int64_t>(*width);
  spec.classes = std::stoll(row.at("classes"));
  Graph graph = build_network(spec);
  give_method(graph, row.at("method"));
  return graph;
}

TEST(CountsCsv, EveryRow) {
  const std::vector<Row> rows = read_rows();
  ASSERT_EQ(rows.size(), 46u);
  int params = 0, macs = 0, activations = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.at("experiment") + ", " + row.at("row") + ", width " + row.at("width") + ", classes " +
                 row.at("classes"));
    const NetworkCount count = count_network(network_of(row), CountRules::kPaper);
    if (const auto expected = number_in(row, "params_paper_rule")) {
      EXPECT_EQ(count.params, *expected);
      ++params;
    }
    if (const auto expected = number_in(row, "macs")) {
      const bool rounded = row.at("note").find("macs rounded") != std::string::npos;
      EXPECT_NEAR(count.macs, *expected, rounded ? half_of_last_digit(*expected) : 0);
      ++macs;
    }
    if (const auto expected = number_in(row, "activations_paper_rule")) {
      EXPECT_EQ(count.activations, *expected);
      ++activations;
    }
  }
  // What the table holds, so that a column that is not read is noticed.
  EXPECT_EQ(params, 44);
  EXPECT_EQ(macs, 41);
  EXPECT_EQ(activations, 32);
}

}  // namespace
}  // namespace onetap
