// Accuracies in percent as points and curves over one axis, in one or several panels: the paper's figures with ours
// beside theirs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace onetap {

struct ChartPoint {
  double x = 0, y = 0;
  std::string about = {};             // shown when a pointer rests on it
  std::optional<double> spread = {};  // half the length of an error bar
};

struct ChartSeries {
  std::string name;  // series of one name share a colour, a marker and a line in the legend
  enum class Kind {
    kPublished,  // hollow markers, joined by a thin line
    kOurs,       // filled markers, joined by a thick one
  } kind = Kind::kOurs;
  std::vector<ChartPoint> points;
  bool joined = true;
};

struct ChartPanel {
  std::string x_label, y_label;
  bool log_x = true;
  std::vector<ChartSeries> series;
  std::optional<double> y_from = {};  // where the axis begins; what lies below is left out
};

// Panels side by side with one legend below, and under it a line about the two kinds of series. Points that are not
// finite, or not positive on a logarithmic axis, are left out; a panel without any says so.
std::string chart_svg(const std::string& title, const std::vector<ChartPanel>& panels,
                      const std::string& kinds = "filled: ours; hollow: published");

}  // namespace onetap
