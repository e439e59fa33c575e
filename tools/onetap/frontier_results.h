// The points of a frontier as tables, figures, files and a page.
#pragma once

#include "onetap/report/pareto.h"
#include "tools/onetap/frontier_points.h"
#include "tools/onetap/table.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

// What accuracy is set against.
struct CostMeasure {
  const char* key;    // in files and their names
  const char* title;  // of columns
  const char* axis;   // of charts
  std::optional<double> (*of)(const FrontierPoint& point);
  std::string (*text)(double cost);
};
const std::vector<CostMeasure>& cost_measures();

// Points that have one front: a kind, run by somebody.
struct FrontierKind {
  std::string name;
  bool is_dense = false;
  bool is_int8 = false;
  bool is_ours = true;
  std::vector<const FrontierPoint*> points;  // accuracies ascend
  // One for each measure; ids are places in `points`. Empty where nothing of the kind has the measure.
  std::vector<std::vector<TradeOff>> fronts;

  bool is_on_front(size_t point, size_t measure) const;
};

// What a kind costs at the accuracy of a dense network, by its fronts. Of networks of floats every other kind is told,
// of int8 networks the other kinds of int8.
struct EqualAccuracy {
  const FrontierPoint* dense = nullptr;
  const FrontierKind* kind = nullptr;
  std::vector<CostAt> costs;                // one for each measure
  std::optional<double> peer_milliseconds;  // of the dense network by the other runtime
};

// All points that were tested on one data set.
struct FrontierData {
  std::string name;                 // "CIFAR-10"
  std::string file_name;            // what names of files begin with
  std::vector<FrontierKind> kinds;  // dense first
  std::vector<EqualAccuracy> equal;

  Table points_table() const;
  Table equal_table() const;
  // Accuracy against one measure.
  std::string figure(size_t measure) const;
};

// By data set, in the order they come. Refers to the points as long as it lives.
std::vector<FrontierData> group_by_data(const std::vector<FrontierPoint>& points);

// kUsage if the copy of the points (--csv) cannot be written, or would take the place of another result. It may lie in
// the folder of the results, which need not be there yet, and may be the frontier.csv that lies there anyway.
void check_csv(const FrontierOptions& options);

class FrontierResults {
 public:
  FrontierResults(std::vector<FrontierPoint> points, const FrontierOptions& options);
  FrontierResults(const FrontierResults&) = delete;  // what is grouped refers to the points
  FrontierResults& operator=(const FrontierResults&) = delete;

  std::string text() const;
  std::string markdown() const;
  std::string csv() const;
  std::string equal_csv() const;
  nlohmann::ordered_json json() const;
  std::string page() const;
  std::vector<std::string> remarks() const;

  // Into the options' directory: frontier.md, frontier.csv, equal-accuracy.csv, frontier.json, DATA-MEASURE.svg and
  // index.html, or the page where the options want it; and the copy of the points.
  void write() const;

 private:
  const std::vector<FrontierPoint> points_;
  const FrontierOptions options_;
  const std::vector<FrontierData> data_;
};

}  // namespace onetap::tool
