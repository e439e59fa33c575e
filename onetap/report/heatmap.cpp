#include "onetap/report/heatmap.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/report/heatmap_layout.h"
#include "onetap/report/svg_canvas.h"
#include "onetap/tap/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace onetap {
namespace {

constexpr size_t kEndLayers = 4;
constexpr double kMaxPixels = 100e6;  // what our own reader of images accepts

template <typename Number>
std::vector<double> normalised(const std::vector<Number>& values) {
  // In floating point: counts of a damaged file might be beyond any integer.
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  std::vector<double> shares;
  for (const Number value : values) shares.push_back(total > 0 ? static_cast<double>(value) / total : 0.0);
  return shares;
}

}  // namespace

std::vector<PositionShares> kept_shares(const AttentionLine& line) {
  std::vector<PositionShares> list;
  for (const LayerAttention& layer : line.layers) {
    list.push_back({layer.name, layer.kernel_h, layer.kernel_w, normalised(layer.kept), layer.kept, layer.none});
  }
  return list;
}

std::vector<PositionShares> kept_shares(const TapNet& net) {
  std::vector<PositionShares> list;
  for (const Node& node : net.graph.nodes()) {
    if (node.op != Op::kTapConv) continue;
    const std::vector<int64_t> kept = kept_counts(net, node);
    const TapLayout layout = tap_layout(net.graph, node);
    const double none = static_cast<double>(layout.dropped) / static_cast<double>(layout.weights());
    list.push_back({node.name, node.kernel.h, node.kernel.w, normalised(kept), kept, none});
  }
  return list;
}

std::vector<PositionShares> shifted_shares(const Graph& graph) {
  const FrozenForm form = frozen_form(graph);
  std::vector<PositionShares> list;
  for (const Node& node : form.graph.nodes()) {
    const auto codes = form.shifted.find(node.name);
    if (codes == form.shifted.end()) continue;
    std::vector<int64_t> kept(static_cast<size_t>(node.kernel.h * node.kernel.w), 0);
    for (const uint16_t code : codes->second) kept[code] += node.shape[0];
    list.push_back({node.name, node.kernel.h, node.kernel.w, normalised(kept), kept});
  }
  return list;
}

std::vector<PositionShares> mean_attention(const AttentionLine& line) {
  std::vector<PositionShares> list;
  for (const LayerAttention& layer : line.layers) {
    list.push_back({layer.name, layer.kernel_h, layer.kernel_w, normalised(layer.mean_p), {}});
  }
  return list;
}

std::vector<PositionShares> choose_layers(std::vector<PositionShares> all, HeatmapLayers which) {
  if (which == HeatmapLayers::kEnds && all.size() > 2 * kEndLayers) {
    all.erase(all.begin() + kEndLayers, all.end() - kEndLayers);
  }
  return all;
}

std::string heatmap_svg(const std::vector<PositionShares>& layers, const HeatmapOptions& options) {
  const HeatmapLayout layout(layers, options);
  SvgCanvas canvas(layout.width(), layout.height(), layout.title());
  layout.draw(canvas);
  return canvas.finish();
}

Raster heatmap_raster(const std::vector<PositionShares>& layers, const HeatmapOptions& options, int scale) {
  const HeatmapLayout layout(layers, options);
  const auto pixels = [&](int at) { return layout.width() * layout.height() * at * at; };
  scale = std::max(scale, 1);
  while (scale > 1 && pixels(scale) > kMaxPixels) --scale;
  if (pixels(scale) > kMaxPixels) {
    fail_usage("[heatmap] expected at most {:.0f} pixels, got {:.0f} for {} layers: SVG has no such limit", kMaxPixels,
               pixels(scale), layers.size());
  }
  RasterCanvas canvas(layout.width(), layout.height(), scale);
  layout.draw(canvas);
  return canvas.finish();
}

std::string heatmap_csv(const std::vector<PositionShares>& layers) {
  std::string csv = "layer,row,column,dy,dx,kept,share\n";
  for (const PositionShares& layer : layers) {
    check_shares(layer);
    const std::string name = csv_field(layer.layer);
    // Not a position of the kernel: it has no place, and a share of all taps rather than of the kept ones.
    if (layer.none > 0) csv += fmt::format("{},,,,,,{:.8g}\n", name, layer.none);
    for (int64_t row = 0; row < layer.kernel_h; ++row) {
      for (int64_t column = 0; column < layer.kernel_w; ++column) {
        const auto position = static_cast<size_t>(row * layer.kernel_w + column);
        csv += fmt::format("{},{},{},{},{},{},{:.8g}\n", name, row, column, row - layer.kernel_h / 2,
                           column - layer.kernel_w / 2, layer.kept.empty() ? "" : std::to_string(layer.kept[position]),
                           layer.share[position]);
      }
    }
  }
  return csv;
}

}  // namespace onetap
