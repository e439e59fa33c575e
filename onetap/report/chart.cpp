#include "onetap/report/chart.h"

#include "onetap/report/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {
namespace {

constexpr double kPlotWidth = 420, kPlotHeight = 300;      // of a panel among others
constexpr double kSingleWidth = 620, kSingleHeight = 380;  // of one alone
constexpr double kLeft = 56, kRight = 20, kTop = 56, kBottom = 46;
constexpr double kLegendLine = 20, kEdge = 12;
constexpr double kLabelSize = 12, kMarkerSize = 4.5;

// Okabe and Ito's colours, which survive colour blindness, without the yellow.
constexpr Rgb kColours[] = {{0, 114, 178},  {213, 94, 0},  {0, 158, 115}, {204, 121, 167},
                            {86, 180, 233}, {230, 159, 0}, {60, 60, 60}};
constexpr size_t kMarkers = 5;

// An axis from the first tick to the last.
struct Axis {
  bool log = false;
  double low = 0, high = 1;
  std::vector<double> ticks;

  double place(double value) const {
    return log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
  void start_at(double value) {
    low = value;
    ticks.erase(std::remove_if(ticks.begin(), ticks.end(), [&](double tick) { return tick < value - 1e-9; }),
                ticks.end());
  }
};

// 1, 2 or 5 times a power of ten.
double round_step(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

Axis linear_axis(double least, double most) {
  if (most - least < 1e-9) {
    least -= 0.5;
    most += 0.5;
  }
  const double step = round_step((most - least) / 5);
  Axis axis;
  axis.low = std::floor(least / step - 0.2) * step;
  if (least >= 0) axis.low = std::max(axis.low, 0.0);  // there is no accuracy below
  axis.high = std::ceil(most / step + 0.2) * step;
  if (most <= 100) axis.high = std::min(axis.high, 100.0);  // nor one above
  const auto count = std::llround((axis.high - axis.low) / step);
  for (int64_t i = 0; i <= count; ++i) axis.ticks.push_back(axis.low + static_cast<double>(i) * step);
  return axis;
}

Axis log_axis(double least, double most) {
  Axis axis;
  axis.log = true;
  axis.low = least / 1.2;
  axis.high = most * 1.2;
  const double decades = std::log10(axis.high / axis.low);
  if (decades < 1) {  // 1, 2 and 5 would be too few
    const double step = round_step((axis.high - axis.low) / 5);
    const auto first = static_cast<int64_t>(std::ceil(axis.low / step));
    const auto last = static_cast<int64_t>(std::floor(axis.high / step));
    for (int64_t i = first; i <= last; ++i) axis.ticks.push_back(static_cast<double>(i) * step);
    return axis;
  }
  const std::vector<double> factors = decades > 2 ? std::vector<double>{1} : std::vector<double>{1, 2, 5};
  const auto first = static_cast<int64_t>(std::floor(std::log10(axis.low)));
  const auto last = static_cast<int64_t>(std::floor(std::log10(axis.high)));
  for (int64_t exponent = first; exponent <= last; ++exponent) {
    const double power = std::pow(10, static_cast<double>(exponent));
    for (const double factor : factors) {
      if (factor * power >= axis.low && factor * power <= axis.high) axis.ticks.push_back(factor * power);
    }
  }
  return axis;
}

std::string tick_text(double value) {
  if (std::abs(value) >= 1e6) return fmt::format("{:.4g} M", value / 1e6);
  if (std::abs(value) >= 1e4) return fmt::format("{:.4g} k", value / 1e3);
  return fmt::format("{:.6g}", std::abs(value) < 1e-9 ? 0.0 : value);
}

// The outline of the marker number `shape` around a point.
std::string marker_path(size_t shape, double x, double y, double size) {
  switch (shape % kMarkers) {
    case 0:
      return fmt::format("M{0:.2f} {1:.2f}a{2} {2} 0 1 0 {3} 0a{2} {2} 0 1 0 -{3} 0Z", x - size, y, size, 2 * size);
    case 1:
      return fmt::format("M{:.2f} {:.2f}h{}v{}h-{}Z", x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8,
                         size * 1.8);
    case 2:
      return fmt::format("M{:.2f} {:.2f}l{} {}h-{}Z", x, y - size * 1.2, size * 1.15, size * 2, size * 2.3);
    case 3:
      return fmt::format("M{:.2f} {:.2f}l{} {}l-{} {}l-{} -{}Z", x, y - size * 1.3, size * 1.3, size * 1.3, size * 1.3,
                         size * 1.3, size * 1.3, size * 1.3);
    default:
      return fmt::format("M{:.2f} {:.2f}l{} -{}h-{}Z", x, y + size * 1.2, size * 1.15, size * 2, size * 2.3);
  }
}

class Chart {
 public:
  Chart(const std::string& title, const std::vector<ChartPanel>& panels, const std::string& kinds)
      : panels_(panels),
        theme_(Theme::light()),
        names_(series_names(panels)),
        plot_width_(panels.size() > 1 ? kPlotWidth : kSingleWidth),
        plot_height_(panels.size() > 1 ? kPlotHeight : kSingleHeight),
        columns_(std::max<size_t>(1, std::min<size_t>(panels.size() > 1 ? 4 : 3, names_.size()))),
        width_(static_cast<double>(std::max<size_t>(1, panels.size())) * (kLeft + plot_width_ + kRight)),
        height_(kTop + plot_height_ + kBottom + kLegendLine * static_cast<double>(legend_lines()) + kEdge),
        canvas_(width_, height_, title),
        title_(title),
        kinds_(kinds) {}

  std::string draw() {
    canvas_.rectangle({0, 0, width_, height_}, theme_.background);
    text(kEdge, 22, title_, theme_.ink, TextStyle::Anchor::kStart, true);
    for (size_t i = 0; i < panels_.size(); ++i) {
      left_ = static_cast<double>(i) * (kLeft + plot_width_ + kRight) + kLeft;
      draw_panel(panels_[i]);
    }
    draw_legend();
    return canvas_.finish();
  }

 private:
  static std::vector<std::string> series_names(const std::vector<ChartPanel>& panels) {
    std::vector<std::string> names;
    for (const ChartPanel& panel : panels) {
      for (const ChartSeries& series : panel.series) {
        if (std::find(names.begin(), names.end(), series.name) == names.end()) names.push_back(series.name);
      }
    }
    return names;
  }

  size_t legend_lines() const { return 1 + (names_.size() + columns_ - 1) / columns_; }
  size_t style(const std::string& name) const {
    return static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }
  static Rgb colour(size_t style) { return kColours[style % std::size(kColours)]; }

  void text(double x, double y, std::string_view what, Rgb ink, TextStyle::Anchor anchor, bool bold = false) {
    canvas_.text(x, y, what, {kLabelSize, ink, anchor, bold});
  }

  double at_x(double value) const { return left_ + plot_width_ * x_.place(value); }
  double at_y(double value) const { return kTop + plot_height_ * (1 - y_.place(value)); }

  static bool is_shown(const ChartPanel& panel, const ChartPoint& point) {
    const bool has_place = std::isfinite(point.x) && std::isfinite(point.y) && (!panel.log_x || point.x > 0);
    return has_place && (!panel.y_from || point.y >= *panel.y_from);
  }

  // False if there is nothing to show.
  bool find_axes(const ChartPanel& panel) {
    double least_x = std::numeric_limits<double>::infinity(), most_x = -least_x, least_y = least_x, most_y = -least_x;
    for (const ChartSeries& series : panel.series) {
      for (const ChartPoint& point : series.points) {
        if (!is_shown(panel, point)) continue;
        least_x = std::min(least_x, point.x);
        most_x = std::max(most_x, point.x);
        least_y = std::min(least_y, point.y - point.spread.value_or(0));
        most_y = std::max(most_y, point.y + point.spread.value_or(0));
      }
    }
    if (most_x < least_x) return false;
    x_ = panel.log_x ? log_axis(least_x, most_x) : linear_axis(least_x, most_x);
    y_ = linear_axis(panel.y_from.value_or(least_y), most_y);
    if (panel.y_from) y_.start_at(*panel.y_from);
    return true;
  }

  void draw_frame(const ChartPanel& panel) {
    canvas_.line(left_, kTop, left_, kTop + plot_height_, theme_.muted);
    canvas_.line(left_, kTop + plot_height_, left_ + plot_width_, kTop + plot_height_, theme_.muted);
    text(left_ + plot_width_ / 2, kTop + plot_height_ + 36, panel.x_label, theme_.ink, TextStyle::Anchor::kMiddle);
    text(left_, kTop - 10, panel.y_label, theme_.ink, TextStyle::Anchor::kStart);
  }

  void draw_panel(const ChartPanel& panel) {
    if (!find_axes(panel)) {  // ticks would be made up
      draw_frame(panel);
      text(left_ + plot_width_ / 2, kTop + plot_height_ / 2, "no points yet", theme_.muted, TextStyle::Anchor::kMiddle);
      return;
    }
    for (const double tick : y_.ticks) {
      canvas_.line(left_, at_y(tick), left_ + plot_width_, at_y(tick), theme_.grid);
      text(left_ - 6, at_y(tick) + kLabelSize * Canvas::kHalfHeight, tick_text(tick), theme_.muted,
           TextStyle::Anchor::kEnd);
    }
    for (const double tick : x_.ticks) {
      canvas_.line(at_x(tick), kTop, at_x(tick), kTop + plot_height_, theme_.grid);
      text(at_x(tick), kTop + plot_height_ + 16, tick_text(tick), theme_.muted, TextStyle::Anchor::kMiddle);
    }
    draw_frame(panel);
    for (const auto kind : {ChartSeries::Kind::kPublished, ChartSeries::Kind::kOurs}) {  // ours on top
      for (const ChartSeries& series : panel.series) {
        if (series.kind == kind) draw_series(panel, series);
      }
    }
  }

  void draw_series(const ChartPanel& panel, const ChartSeries& series) {
    std::vector<ChartPoint> points;
    for (const ChartPoint& point : series.points) {
      if (is_shown(panel, point)) points.push_back(point);
    }
    std::sort(points.begin(), points.end(), [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    const bool ours = series.kind == ChartSeries::Kind::kOurs;
    const size_t number = style(series.name);
    SvgCanvas::Stroke stroke{colour(number), ours ? 1.8 : 1.0, !ours};
    if (series.joined && points.size() > 1) {
      std::string path;
      for (const ChartPoint& point : points) {
        path += fmt::format("{}{:.2f} {:.2f}", path.empty() ? "M" : "L", at_x(point.x), at_y(point.y));
      }
      canvas_.path(path, stroke, std::nullopt);
    }
    stroke.width = 1.4;
    stroke.dashed = false;
    for (const ChartPoint& point : points) {
      const double x = at_x(point.x), y = at_y(point.y);
      if (point.spread && *point.spread > 0) {
        canvas_.line(x, at_y(point.y - *point.spread), x, at_y(point.y + *point.spread), stroke.colour);
      }
      canvas_.path(marker_path(number, x, y, kMarkerSize), stroke, ours ? stroke.colour : theme_.background,
                   point.about);
    }
  }

  void draw_legend() {
    const double top = kTop + plot_height_ + kBottom + kLabelSize;
    const auto entry = [&](size_t place, size_t marker, Rgb ink, bool filled, const std::string& name) {
      const double x =
          kEdge + static_cast<double>(place % columns_) * (width_ - 2 * kEdge) / static_cast<double>(columns_);
      const size_t line = place / columns_;
      const double y = top + static_cast<double>(line) * kLegendLine;
      canvas_.path(marker_path(marker, x + kMarkerSize + 2, y - kLabelSize * Canvas::kHalfHeight, kMarkerSize),
                   {ink, 1.4, false}, filled ? ink : theme_.background);
      text(x + 18, y, name, theme_.ink, TextStyle::Anchor::kStart);
    };
    for (size_t i = 0; i < names_.size(); ++i) entry(i, i, colour(i), true, names_[i]);
    const double y = top + static_cast<double>(legend_lines() - 1) * kLegendLine;
    text(kEdge, y, kinds_, theme_.muted, TextStyle::Anchor::kStart);
  }

  const std::vector<ChartPanel>& panels_;
  Theme theme_;
  std::vector<std::string> names_;
  double plot_width_, plot_height_;
  size_t columns_;
  double width_, height_;
  SvgCanvas canvas_;
  std::string title_, kinds_;
  Axis x_, y_;
  double left_ = 0;  // of the panel's plot
};

}  // namespace

std::string chart_svg(const std::string& title, const std::vector<ChartPanel>& panels, const std::string& kinds) {
  return Chart(title, panels, kinds).draw();
}

}  // namespace onetap
