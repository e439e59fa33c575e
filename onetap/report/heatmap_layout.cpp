#include "onetap/report/heatmap_layout.h"

#include "onetap/base/fail.h"
#include "onetap/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

using Anchor = TextStyle::Anchor;

constexpr double kMaxWidth = 1000;
constexpr double kMinWidth = 360;  // for the title and the colour bar over a single map
constexpr double kMargin = 24;
constexpr double kGap = 16, kRowGap = 20;  // between maps
constexpr double kTitleSize = 16, kTextSize = 12, kNameSize = 11, kSmallSize = 10;
constexpr double kTitleBaseline = kMargin + 12;
constexpr double kSubtitleBaseline = kTitleBaseline + 20;
constexpr double kBarTop = kSubtitleBaseline + 14, kBarHeight = 12, kBarWidth = 240;
constexpr int kBarSteps = 120;
constexpr double kTick = 4;
constexpr double kMapsTop = kBarTop + kBarHeight + kTick + 12 + 22;
constexpr double kNameHeight = 16;    // layer's name over a map
constexpr double kOffsetHeight = 14;  // column offsets between name and grid
constexpr double kNoneHeight = 16;    // share of dropped taps below the grid
constexpr double kNameRoom = 104;     // even a 1x1 map has room for a name of this width

constexpr size_t kFewMaps = 8;    // up to here in rows of four, as in the paper
constexpr size_t kManyMaps = 24;  // beyond, maps become smaller
constexpr int64_t kLargestLabelled = 15;
constexpr double kLargeMap = 360;  // side of a map with cells too small for labels
constexpr double kRoomyCell = 20;  // cells from here on have each row's and column's offset

double text_width(size_t characters, double size) {
  return static_cast<double>(characters) * Canvas::kCharacterWidth * size;
}

size_t characters_in(double width, double character) {
  return static_cast<size_t>(std::max(width / character, 1.0));
}

// Up to four characters, or three: a small share has its decimal, a large one does without.
std::string cell_label(double share, size_t characters) {
  const double percent = 100 * share;
  const bool whole = share == 0 || percent >= 99.95 || (characters < 4 && percent >= 9.95);
  return fmt::format("{:.{}f}", percent, whole ? 0 : 1);
}

// The offset is worth a label where there is room for all, or at the ends and the centre.
bool labels_offset(int64_t index, int64_t side, double cell) {
  return cell >= kRoomyCell || index == 0 || index == side - 1 || index == side / 2;
}

}  // namespace

void check_shares(const PositionShares& layer) {
  const bool kernel_ok = layer.kernel_h >= 1 && layer.kernel_w >= 1;
  const auto positions = kernel_ok ? static_cast<size_t>(layer.kernel_h * layer.kernel_w) : 0;
  if (!kernel_ok || layer.share.size() != positions || (!layer.kept.empty() && layer.kept.size() != positions)) {
    fail_usage("[heatmap] expected a fraction for each of {}x{} positions, got {} fractions and {} counts ('{}')",
               layer.kernel_h, layer.kernel_w, layer.share.size(), layer.kept.size(), layer.layer);
  }
  if (!(layer.none >= 0 && layer.none <= 1)) {
    fail_usage("[heatmap] expected a fraction of dropped taps of 0 to 1, got {} ('{}')", layer.none, layer.layer);
  }
  for (const double share : layer.share) {
    if (!(share >= 0 && share <= 1 + 1e-9)) {
      fail_usage("[heatmap] expected fractions of 0 to 1, got {} ('{}')", share, layer.layer);
    }
  }
}

ShareScale ShareScale::covering(double largest) {
  constexpr double kMostSteps = 5;
  constexpr double kSlack = 1e-9;  // 0.15 / 0.05 is a little over 3
  if (!(largest > 0)) return {};
  for (double decade = 1e-6;; decade *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double step = digit * decade;
      const double steps = std::ceil(largest / step - kSlack);
      if (steps <= kMostSteps) return {std::max(steps, 1.0) * step, step};
    }
  }
}

bool HeatmapLayout::Map::has_labels() const {
  return std::max(layer->kernel_h, layer->kernel_w) <= kLargestLabelled;
}

HeatmapLayout::HeatmapLayout(const std::vector<PositionShares>& layers, const HeatmapOptions& options)
    : options_(options), theme_(options.dark ? Theme::dark() : Theme::light()) {
  if (layers.empty()) fail_usage("[heatmap] expected at least one layer, got none");
  double largest = options.covers, single = 0;
  for (const PositionShares& layer : layers) {
    check_shares(layer);
    // A kernel of one position has no choice; its 100 % would leave the other maps pale.
    const double top = *std::max_element(layer.share.begin(), layer.share.end());
    if (layer.share.size() > 1) {
      largest = std::max(largest, top);
    } else {
      single = std::max(single, top);
    }
  }
  scale_ = ShareScale::covering(largest > 0 ? largest : single);
  clipped_ = single > scale_.top;
  const bool many = layers.size() > kManyMaps;
  double widest = kNameRoom;
  for (const PositionShares& layer : layers) {
    Map map{&layer};
    const int64_t side = std::max(layer.kernel_h, layer.kernel_w);
    map.cell = side <= 3 ? (many ? 28 : 36) : side <= 5 ? (many ? 28 : 32) : 24;
    map.label_characters = side <= 5 ? 4 : 3;
    if (side > kLargestLabelled) map.cell = std::max(4.0, std::floor(kLargeMap / static_cast<double>(side)));
    axis_ = std::max(axis_, 5 + std::ceil(text_width(std::to_string(-(layer.kernel_h / 2)).size(), kSmallSize)));
    maps_.push_back(map);
    widest = std::max(widest, map.grid_width());
  }
  slot_width_ = axis_ + widest;
  place_maps();
}

void HeatmapLayout::place_maps() {
  const auto fitting = static_cast<size_t>((kMaxWidth - 2 * kMargin + kGap) / (slot_width_ + kGap));
  const size_t columns = std::max<size_t>(1, std::min(fitting, maps_.size() <= kFewMaps ? 4 : maps_.size()));
  double y = kMapsTop;
  for (size_t first = 0; first < maps_.size(); first += columns) {
    const size_t end = std::min(first + columns, maps_.size());
    double row_height = 0;
    for (size_t i = first; i < end; ++i) {
      maps_[i].x = kMargin + static_cast<double>(i - first) * (slot_width_ + kGap);
      maps_[i].y = y;
      const double below = maps_[i].layer->none > 0 ? kNoneHeight : 0;
      row_height = std::max(row_height, kNameHeight + kOffsetHeight + maps_[i].grid_height() + below);
    }
    y += row_height + kRowGap;
  }
  const auto used = static_cast<double>(std::min(columns, maps_.size()));
  width_ = std::max(kMinWidth, 2 * kMargin + used * (slot_width_ + kGap) - kGap);
  height_ = y - kRowGap + kMargin;
}

std::string HeatmapLayout::title() const {
  const std::string what = fmt::format("{} per kernel position", options_.what);
  return options_.title.empty() ? what : fmt::format("{}: {}", options_.title, what);
}

void HeatmapLayout::draw(Canvas& canvas) const {
  canvas.rectangle({0, 0, width_, height_}, theme_.background);
  const double room = width_ - 2 * kMargin;
  canvas.text(kMargin, kTitleBaseline,
              shorten_middle(options_.title, characters_in(room, Canvas::kBoldCharacterWidth * kTitleSize)),
              {kTitleSize, theme_.ink, Anchor::kStart, true});
  canvas.text(kMargin, kSubtitleBaseline,
              shorten_middle(fmt::format("{} per kernel position, in %", options_.what),
                             characters_in(room, Canvas::kCharacterWidth * kTextSize)),
              {kTextSize, theme_.muted});
  draw_legend(canvas);
  for (const Map& map : maps_) draw_map(canvas, map);
}

void HeatmapLayout::draw_legend(Canvas& canvas) const {
  canvas.rectangle({kMargin - 1, kBarTop - 1, kBarWidth + 2, kBarHeight + 2}, theme_.grid);
  for (int i = 0; i < kBarSteps; ++i) {
    // Each step reaches to the end and is painted over by the next: no seams between them.
    const double x = kBarWidth * i / kBarSteps;
    canvas.rectangle({kMargin + x, kBarTop, kBarWidth - x, kBarHeight},
                     heat_colour(static_cast<double>(i) / (kBarSteps - 1), options_.dark));
  }
  const auto steps = static_cast<int>(std::lround(scale_.top / scale_.step));
  for (int i = 0; i <= steps; ++i) {
    const double x = kMargin + kBarWidth * i / steps;
    const double bottom = kBarTop + kBarHeight + 1;
    canvas.line(x, bottom, x, bottom + kTick, theme_.muted);
    canvas.text(x, bottom + kTick + 10,
                fmt::format("{:.6g}%{}", 100 * scale_.step * i, clipped_ && i == steps ? "+" : ""),
                {kSmallSize, theme_.muted, i == 0 ? Anchor::kStart : Anchor::kMiddle});
  }
}

void HeatmapLayout::draw_map(Canvas& canvas, const Map& map) const {
  const double grid_x = map.x + axis_;
  canvas.text(grid_x, map.y + kNameSize,
              shorten_middle(map.layer->layer, characters_in(slot_width_ - axis_, Canvas::kCharacterWidth * kNameSize)),
              {kNameSize, theme_.ink});
  draw_offsets(canvas, map);
  if (map.layer->none > 0) {
    canvas.text(grid_x, map.y + kNameHeight + kOffsetHeight + map.grid_height() + kNoneHeight - 4,
                fmt::format("none {} %", cell_label(map.layer->none, 4)), {kSmallSize, theme_.muted});
  }
  // Behind the cells, and seen between them: the lines of the grid.
  canvas.rectangle({grid_x, map.y + kNameHeight + kOffsetHeight, map.grid_width(), map.grid_height()}, theme_.grid);
  for (int64_t row = 0; row < map.layer->kernel_h; ++row) {
    for (int64_t column = 0; column < map.layer->kernel_w; ++column) draw_cell(canvas, map, row, column);
  }
}

void HeatmapLayout::draw_offsets(Canvas& canvas, const Map& map) const {
  const double grid_x = map.x + axis_, grid_y = map.y + kNameHeight + kOffsetHeight;
  const auto middle = [&](int64_t index) { return map.cell * (static_cast<double>(index) + 0.5); };
  const PositionShares& layer = *map.layer;
  for (int64_t column = 0; column < layer.kernel_w; ++column) {
    if (!labels_offset(column, layer.kernel_w, map.cell)) continue;
    canvas.text(grid_x + middle(column), grid_y - 4, std::to_string(column - layer.kernel_w / 2),
                {kSmallSize, theme_.muted, Anchor::kMiddle});
  }
  for (int64_t row = 0; row < layer.kernel_h; ++row) {
    if (!labels_offset(row, layer.kernel_h, map.cell)) continue;
    canvas.text(grid_x - 5, grid_y + middle(row) + Canvas::kHalfHeight * kSmallSize,
                std::to_string(row - layer.kernel_h / 2), {kSmallSize, theme_.muted, Anchor::kEnd});
  }
}

void HeatmapLayout::draw_cell(Canvas& canvas, const Map& map, int64_t row, int64_t column) const {
  const PositionShares& layer = *map.layer;
  const auto position = static_cast<size_t>(row * layer.kernel_w + column);
  const double share = layer.share[position];
  const Rectangle box = {map.x + axis_ + 1 + map.cell * static_cast<double>(column),
                         map.y + kNameHeight + kOffsetHeight + 1 + map.cell * static_cast<double>(row), map.cell - 1,
                         map.cell - 1};
  std::string tooltip = fmt::format("{}, row {}, column {} (dy {}, dx {}): {:.2f} %", layer.layer, row, column,
                                    row - layer.kernel_h / 2, column - layer.kernel_w / 2, 100 * share);
  if (!layer.kept.empty()) tooltip += fmt::format(", {} kept", layer.kept[position]);
  const Rgb fill = heat_colour(scale_.place(share), options_.dark);
  canvas.rectangle(box, fill, tooltip);
  if (!map.has_labels()) return;
  canvas.text(box.x + box.width / 2, box.y + box.height / 2 + Canvas::kHalfHeight * kSmallSize,
              cell_label(share, map.label_characters), {kSmallSize, readable_on(fill), Anchor::kMiddle});
}

}  // namespace onetap
