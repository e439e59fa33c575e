// Heat maps of where the taps are: one small grid per layer, as the paper's figures show them.
#pragma once

#include "onetap/journal/attention_log.h"
#include "onetap/report/raster_canvas.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <string>
#include <vector>

namespace onetap {

// How often each position of a layer's kernel is kept, or its mean attention: shares that sum to 1 (or are all 0, for a
// layer that keeps nothing).
struct PositionShares {
  std::string layer;
  int64_t kernel_h = 0, kernel_w = 0;
  std::vector<double> share;  // rows first
  std::vector<int64_t> kept;  // counts behind the shares; empty for a mean of P
  double none = 0;            // share of the layer's taps that were dropped; `share` is of the others
};

std::vector<PositionShares> kept_shares(const AttentionLine& line);
// Of a frozen network: its tap convolutions.
std::vector<PositionShares> kept_shares(const TapNet& net);
// Of a network that is not frozen yet: its fixed shifts, as the tap convolutions that they will be.
std::vector<PositionShares> shifted_shares(const Graph& graph);
std::vector<PositionShares> mean_attention(const AttentionLine& line);

enum class HeatmapLayers {
  kEnds,  // the first four and the last four, the paper's choice
  kAll,
};
std::vector<PositionShares> choose_layers(std::vector<PositionShares> all, HeatmapLayers which);

struct HeatmapOptions {
  std::string title;
  std::string what = "kept taps";  // what the shares are of: this or "mean attention"
  bool dark = false;
  double covers = 0;  // the colour scale goes to this share at least: pictures of one scale can be compared
};

// Pictures about 1000 pixels wide at most, all maps on one colour scale. kUsage without layers, or if a layer's shares
// do not fit its kernel.
std::string heatmap_svg(const std::vector<PositionShares>& layers, const HeatmapOptions& options);
// `scale` pixels for each of the SVG's. A picture of more than 100 million pixels is drawn at a smaller scale, or is
// refused (kUsage) if even a scale of 1 has as many.
Raster heatmap_raster(const std::vector<PositionShares>& layers, const HeatmapOptions& options, int scale = 2);

// layer,row,column,dy,dx,kept,share: rows and columns from 0, dy and dx from the centre of the kernel; `kept` is empty
// for a mean of P. A layer with dropped taps begins with a row without a position: their share.
std::string heatmap_csv(const std::vector<PositionShares>& layers);

}  // namespace onetap
