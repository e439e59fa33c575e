// Where everything of a picture of heat maps goes; draws it on any canvas.
#pragma once

#include "onetap/report/canvas.h"
#include "onetap/report/heatmap.h"

#include <string>
#include <vector>

namespace onetap {

// kUsage if the lists do not fit the kernel.
void check_shares(const PositionShares& layer);

// The common scale of all maps: from 0 to a round share, with ticks.
struct ShareScale {
  double top = 1;
  double step = 0.2;

  // The smallest with at most five steps.
  static ShareScale covering(double largest);
  double place(double share) const { return share / top; }
};

class HeatmapLayout {
 public:
  // Refers to both as long as it lives.
  HeatmapLayout(const std::vector<PositionShares>& layers, const HeatmapOptions& options);

  double width() const { return width_; }
  double height() const { return height_; }
  // One line that says what the picture shows.
  std::string title() const;
  void draw(Canvas& canvas) const;

 private:
  // One map: the room it has and the size of its cells.
  struct Map {
    const PositionShares* layer;
    double x = 0, y = 0;
    double cell = 0;
    size_t label_characters = 0;

    double grid_width() const { return cell * static_cast<double>(layer->kernel_w) + 1; }
    double grid_height() const { return cell * static_cast<double>(layer->kernel_h) + 1; }
    bool has_labels() const;
  };

  void place_maps();
  void draw_legend(Canvas& canvas) const;
  void draw_map(Canvas& canvas, const Map& map) const;
  void draw_offsets(Canvas& canvas, const Map& map) const;
  void draw_cell(Canvas& canvas, const Map& map, int64_t row, int64_t column) const;

  const HeatmapOptions& options_;
  Theme theme_;
  ShareScale scale_;
  std::vector<Map> maps_;
  bool clipped_ = false;   // there are shares beyond the scale
  double axis_ = 0;        // room for the row offsets on the left of each map
  double slot_width_ = 0;  // of the widest map: columns line up
  double width_ = 0, height_ = 0;
};

}  // namespace onetap
