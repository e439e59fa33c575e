#include "onetap/journal/attention_log.h"
#include "onetap/report/chart.h"
#include "onetap/report/paper_heatmaps.h"
#include "onetap/report/svg_canvas.h"
#include "tools/onetap/console.h"
#include "tools/onetap/reproduce_results.h"

#include <fmt/format.h>

#include <algorithm>

namespace onetap::tool {
namespace {

using Kind = ChartSeries::Kind;

// Rounded where the paper rounds.
const Spread& shown_accuracy(const Experiment& experiment, const RowResult& row) {
  const bool rounded = experiment.figure == FigureKind::kTemperature && row.rounded.mean;
  return rounded ? row.rounded : row.accuracy;
}

std::optional<double> ours_x(FigureKind kind, const RowResult& row) {
  return kind == FigureKind::kTemperature ? row.row->x : kind == FigureKind::kMemory ? row.memory() : row.params;
}

std::optional<double> published_x(FigureKind kind, const RowResult& row) {
  if (row.row->x) return row.row->x;
  // Where the paper prints no size, the network has ours.
  return kind == FigureKind::kSizes && row.row->published.params ? row.row->published.params : ours_x(kind, row);
}

ChartSeries& series_of(ChartPanel& panel, const std::string& name, Kind kind, bool joined) {
  for (ChartSeries& series : panel.series) {
    if (series.name == name && series.kind == kind) return series;
  }
  panel.series.push_back({name, kind, {}, joined});
  return panel.series.back();
}

// Curves are joined; rows of tables have a name of their own.
void add_row(ChartPanel& panel, const Experiment& experiment, const RowResult& row) {
  const bool curve = experiment.figure != FigureKind::kSizes;
  const std::string& name = curve ? row.row->group : row.row->label;
  const auto& published = row.row->published.accuracy;
  if (const auto x = published_x(experiment.figure, row); published && x) {
    series_of(panel, name, Kind::kPublished, curve)
        .points.push_back({*x, *published, fmt::format("{}, published: {:.2f} %", row.row->label, *published)});
  }
  const Spread& accuracy = shown_accuracy(experiment, row);
  if (const auto x = ours_x(experiment.figure, row); accuracy.mean && x) {
    series_of(panel, name, Kind::kOurs, curve)
        .points.push_back(
            {*x, *accuracy.mean,
             fmt::format("{}: {:.2f} %, {} of {} epochs", row.row->label, *accuracy.mean, row.epochs, row.full_epochs),
             accuracy.sd});
  }
}

std::string x_title(FigureKind kind) {
  return kind == FigureKind::kMemory ? "parameters and activations, 32-bit words" : "parameters, 32-bit words";
}

// Where the axis of the paper's figure begins: two of its own points lie below.
constexpr double kPaperMemoryFrom = 90;

bool has_ours_below(const ChartPanel& panel, double y) {
  return std::any_of(panel.series.begin(), panel.series.end(), [&](const ChartSeries& series) {
    return series.kind == Kind::kOurs && std::any_of(series.points.begin(), series.points.end(),
                                                     [&](const ChartPoint& point) { return point.y < y; });
  });
}

std::string chart(const ExperimentResults& results) {
  const Experiment& experiment = results.experiment();
  std::vector<ChartPanel> panels;
  for (const RowResult& row : results.rows()) {
    const bool over_setting = experiment.figure == FigureKind::kTemperature;
    const std::string x_label =
        over_setting ? row.row->panel
                     : fmt::format("{}, {}", experiment_data(row.row->run.data).title, x_title(experiment.figure));
    auto panel =
        std::find_if(panels.begin(), panels.end(), [&](const ChartPanel& known) { return known.x_label == x_label; });
    if (panel == panels.end()) panel = panels.insert(panels.end(), ChartPanel{x_label, "accuracy, %", true, {}});
    add_row(*panel, experiment, row);
  }
  if (experiment.figure == FigureKind::kMemory && !has_ours_below(panels.front(), kPaperMemoryFrom)) {
    panels.front().y_from = kPaperMemoryFrom;
    panels.front().y_label += " (from 90, as in the paper)";
  }
  return chart_svg(experiment.title, panels);
}

std::vector<PositionShares> our_maps(const RowResult& row) {
  try {
    const auto lines = read_attention(row.runs.front().files().attention());
    if (!lines.empty()) return choose_layers(kept_shares(lines.back()), HeatmapLayers::kEnds);
  } catch (const Error& problem) {
    console().warn(problem.what());
  }
  return {};
}

double largest_share(const std::vector<PositionShares>& maps) {
  double largest = 0;
  for (const PositionShares& map : maps) {
    for (const double share : map.share) largest = std::max(largest, share);
  }
  return largest;
}

std::string heatmap_figure(const ExperimentResults& results) {
  const Experiment& experiment = results.experiment();
  const auto published = paper_heatmaps(experiment.paper_maps);
  const RowResult& row = results.rows().front();
  const auto ours = row.runs.empty() ? std::vector<PositionShares>() : our_maps(row);
  HeatmapOptions options;
  options.covers = std::max(largest_share(published), largest_share(ours));
  options.title = "Published (shades of the figure)";
  std::vector<std::string> pictures = {heatmap_svg(published, options)};
  if (!ours.empty()) {
    options.title = fmt::format("Ours: {}, seed {}, {} of {} epochs", row.row->label, row.runs.front().seed, row.epochs,
                                row.full_epochs);
    pictures.push_back(heatmap_svg(ours, options));
  }
  return stacked_svg(experiment.title, pictures);
}

}  // namespace

std::string results_figure(const ExperimentResults& results) {
  return results.experiment().figure == FigureKind::kHeatmaps ? heatmap_figure(results) : chart(results);
}

}  // namespace onetap::tool
