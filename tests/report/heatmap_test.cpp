#include "onetap/report/heatmap.h"

#include "onetap/base/utf8.h"
#include "onetap/graph/text.h"
#include "onetap/report/heatmap_layout.h"
#include "tests/support/support.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace onetap {
namespace {

using testing::expect_error;

AttentionLine line_of(const std::vector<std::pair<int64_t, int64_t>>& kernels) {
  AttentionLine line;
  for (const auto& [h, w] : kernels) {
    LayerAttention layer;
    layer.name = "layer" + std::to_string(line.layers.size() + 1);
    layer.kernel_h = h;
    layer.kernel_w = w;
    const auto positions = static_cast<size_t>(h * w);
    layer.mean_p.assign(positions, 1.0 / static_cast<double>(positions));
    for (size_t i = 0; i < positions; ++i) layer.kept.push_back(static_cast<int64_t>(i + 1));
    layer.max_p.assign(LayerAttention::kBins, 1.0 / LayerAttention::kBins);
    line.layers.push_back(layer);
  }
  return line;
}

AttentionLine all_centre(int64_t side) {
  AttentionLine line = line_of({{side, side}, {side, side}});
  for (LayerAttention& layer : line.layers) {
    std::fill(layer.kept.begin(), layer.kept.end(), 0);
    layer.kept[layer.kept.size() / 2] = 64;
  }
  return line;
}

// A canvas that remembers what was drawn.
struct Drawing : Canvas {
  struct Cell {
    Rectangle box;
    Rgb fill;
    std::string tooltip;
  };
  struct Text {
    double left, right, baseline, size;
    std::string text;
    Rgb colour;
  };
  std::vector<Cell> rectangles;
  std::vector<Text> texts;

  void rectangle(const Rectangle& box, Rgb fill, std::string_view tooltip) override {
    rectangles.push_back({box, fill, std::string(tooltip)});
  }
  void line(double, double, double, double, Rgb) override {}
  void text(double x, double baseline, std::string_view utf8, const TextStyle& style) override {
    const double character = style.bold ? kBoldCharacterWidth : kCharacterWidth;
    const double width = static_cast<double>(decode_utf8(utf8).size()) * character * style.size;
    const double part = style.anchor == TextStyle::Anchor::kStart    ? 0
                        : style.anchor == TextStyle::Anchor::kMiddle ? 0.5
                                                                     : 1;
    texts.push_back({x - part * width, x + (1 - part) * width, baseline, style.size, std::string(utf8), style.colour});
  }

  std::vector<Cell> cells() const {
    std::vector<Cell> list;
    for (const Cell& rectangle : rectangles) {
      if (!rectangle.tooltip.empty()) list.push_back(rectangle);
    }
    return list;
  }
};

struct Drawn {
  Drawing drawing;
  double width, height;
};

Drawn draw(const std::vector<PositionShares>& layers, const HeatmapOptions& options = {}) {
  const HeatmapLayout layout(layers, options);
  Drawn drawn{{}, layout.width(), layout.height()};
  layout.draw(drawn.drawing);
  return drawn;
}

bool overlap(const Rectangle& a, const Rectangle& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

bool inside(const Rectangle& inner, const Rectangle& outer) {
  return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width &&
         inner.y + inner.height <= outer.y + outer.height;
}

// Nothing leaves the picture, no two cells and no two lines of text overlap, and a label stays inside its cell.
void expect_tidy(const Drawn& drawn) {
  EXPECT_LE(drawn.width, 1000);
  for (const auto& [box, fill, tooltip] : drawn.drawing.rectangles) {
    EXPECT_GE(box.x, 0);
    EXPECT_LE(box.x + box.width, drawn.width);
    EXPECT_LE(box.y + box.height, drawn.height);
  }
  auto texts = drawn.drawing.texts;
  std::sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) {
    return a.baseline != b.baseline ? a.baseline < b.baseline : a.left < b.left;
  });
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_GE(texts[i].left, 0) << texts[i].text;
    EXPECT_LE(texts[i].right, drawn.width) << texts[i].text;
    if (i > 0 && texts[i].baseline == texts[i - 1].baseline) {
      EXPECT_GE(texts[i].left, texts[i - 1].right) << texts[i - 1].text << " | " << texts[i].text;
    }
  }
  auto cells = drawn.drawing.cells();
  std::sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.box.y < b.box.y; });
  for (size_t i = 0; i < cells.size(); ++i) {
    for (size_t j = i + 1; j < cells.size() && cells[j].box.y < cells[i].box.y + cells[i].box.height; ++j) {
      EXPECT_FALSE(overlap(cells[i].box, cells[j].box)) << cells[i].tooltip << " | " << cells[j].tooltip;
    }
  }
  for (const auto& text : texts) {
    const Rectangle box = {text.left, text.baseline - 0.7 * text.size, text.right - text.left, 0.7 * text.size};
    constexpr double kTallestCell = 40;
    auto cell =
        std::partition_point(cells.begin(), cells.end(), [&](const auto& c) { return c.box.y + kTallestCell < box.y; });
    for (; cell != cells.end() && cell->box.y < text.baseline; ++cell) {
      EXPECT_TRUE(inside(box, cell->box) || !overlap(box, cell->box)) << text.text << " | " << cell->tooltip;
    }
  }
}

// Enough of XML to catch what we could get wrong: tags nest, attributes are quoted, nothing is left unescaped.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  size_t i = 0;
  const auto check_text = [&](std::string_view text) {
    EXPECT_EQ(text.find('>'), std::string_view::npos) << text;
    for (size_t at = text.find('&'); at != std::string_view::npos; at = text.find('&', at + 1)) {
      const std::string_view entity = text.substr(at, text.find(';', at) - at + 1);
      EXPECT_TRUE(entity == "&amp;" || entity == "&lt;" || entity == "&gt;" || entity == "&quot;") << entity;
    }
  };
  while (i < xml.size()) {
    const size_t start = xml.find('<', i);
    check_text(std::string_view(xml).substr(i, std::min(start, xml.size()) - i));
    if (start == std::string::npos) break;
    const size_t end = xml.find('>', start);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(start + 1, end - start - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    i = end + 1;
  }
  EXPECT_TRUE(open.empty());
}

TEST(Heatmap, AllCentreNetworkGivesAllCentreMaps) {
  for (const bool dark : {false, true}) {
    const auto shares = kept_shares(all_centre(3));
    HeatmapOptions options;
    options.dark = dark;
    const Drawn drawn = draw(shares, options);
    const auto cells = drawn.drawing.cells();
    ASSERT_EQ(cells.size(), 18u);
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool centre = i % 9 == 4;
      EXPECT_EQ(shares[i / 9].share[i % 9], centre ? 1.0 : 0.0);
      EXPECT_EQ(hex(cells[i].fill), hex(heat_colour(centre ? 1 : 0, dark)));
      EXPECT_NE(cells[i].tooltip.find(centre ? "row 1, column 1 (dy 0, dx 0): 100.00 %, 64 kept" : "0.00 %, 0 kept"),
                std::string::npos)
          << cells[i].tooltip;
    }
    const auto labelled = [&](const std::string& label) {
      return std::count_if(drawn.drawing.texts.begin(), drawn.drawing.texts.end(),
                           [&](const auto& text) { return text.text == label; });
    };
    EXPECT_EQ(labelled("100"), 2);
    EXPECT_EQ(labelled("100%"), 1) << "the legend ends at the largest share";
  }
}

TEST(Heatmap, RasterHasTheColoursOfTheCells) {
  for (const int scale : {1, 2, 3}) {
    const auto shares = kept_shares(all_centre(5));
    const Raster raster = heatmap_raster(shares, {}, scale);
    const Drawn drawn = draw(shares);
    EXPECT_EQ(raster.width, std::llround(drawn.width * scale));
    EXPECT_EQ(raster.height, std::llround(drawn.height * scale));
    for (const auto& cell : drawn.drawing.cells()) {
      // Inside the corners, away from the label; and the line of the grid before the cell.
      const auto at = [&](double y, double x) { return raster.at(std::llround(y * scale), std::llround(x * scale)); };
      EXPECT_EQ(hex(at(cell.box.y + 2, cell.box.x + 2)), hex(cell.fill));
      EXPECT_EQ(hex(at(cell.box.y + cell.box.height - 2, cell.box.x + cell.box.width - 2)), hex(cell.fill));
      EXPECT_EQ(hex(at(cell.box.y + 2, cell.box.x - 1)), hex(Theme::light().grid));
    }
    EXPECT_EQ(hex(raster.at(0, 0)), hex(Theme::light().background));
  }
}

TEST(Heatmap, SharesSumToOne) {
  const AttentionLine line = line_of({{3, 3}, {1, 3}, {5, 5}, {7, 7}});
  for (const auto& shares : {kept_shares(line), mean_attention(line)}) {
    ASSERT_EQ(shares.size(), 4u);
    for (const PositionShares& layer : shares) {
      EXPECT_NEAR(std::accumulate(layer.share.begin(), layer.share.end(), 0.0), 1, 1e-12);
    }
  }
  EXPECT_DOUBLE_EQ(kept_shares(line)[1].share[2], 3.0 / 6);  // counts 1, 2, 3
  EXPECT_EQ(kept_shares(line)[1].kept, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_TRUE(mean_attention(line)[0].kept.empty());
}

// 3 outputs share in a pair and a single one, over 2 inputs: a set of the pair counts twice.
TEST(Heatmap, AFrozenLayerCountsSlicesHoweverTheyShare) {
  TapNet net;
  net.graph = parse_network("onetap-net 1\nx = input 2x4x4\nc = tapconv x out=3 kernel=1x4 taps=1 share=2\n");
  net.layers["c"] = {Tensor(DType::kF32, {3, 2, 1}), {}, {0, 3, 0, 1}};
  const auto shares = kept_shares(net);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].kept, (std::vector<int64_t>{3, 1, 0, 2}));
  EXPECT_EQ(shares[0].share, (std::vector<double>{3 / 6.0, 1 / 6.0, 0, 2 / 6.0}));
  EXPECT_NE(heatmap_csv(shares).find("c,0,0,0,-2,3,0.5\n"), std::string::npos);
}

// 2 of 8 taps are gone; the others' shares are of the 6 that are left.
TEST(Heatmap, DroppedTapsAreShownBesideTheKeptOnes) {
  PositionShares layer{"c", 1, 3, {0.5, 0.5, 0}, {3, 3, 0}, 0.25};
  const Drawn drawn = draw({layer});
  expect_tidy(drawn);
  const auto& texts = drawn.drawing.texts;
  EXPECT_EQ(std::count_if(texts.begin(), texts.end(), [](const auto& text) { return text.text == "none 25.0 %"; }), 1);
  EXPECT_NE(heatmap_csv({layer}).find("share\nc,,,,,,0.25\nc,0,0,0,-1,3,0.5\n"), std::string::npos);
  layer.none = 0;
  for (const auto& text : draw({layer}).drawing.texts) EXPECT_EQ(text.text.find("none"), std::string::npos);
  EXPECT_EQ(heatmap_csv({layer}).find(",,,"), std::string::npos);
  layer.none = 1.5;
  expect_error(ErrorKind::kUsage, "dropped taps of 0 to 1, got 1.5 ('c')", [&] { heatmap_csv({layer}); });

  TapNet net;
  net.graph = parse_network("onetap-net 1\nx = input 2x5x5\nc = tapconv x out=4 kernel=3x1 share=2 dropped=2\n");
  net.layers["c"].positions = {0, 3, 1, 1};  // of two blocks of outputs and two inputs, one set is empty
  EXPECT_EQ(kept_shares(net)[0].kept, (std::vector<int64_t>{2, 4, 0}));
  EXPECT_EQ(kept_shares(net)[0].none, 0.25);
}

TEST(Heatmap, LayerThatKeepsNothingIsCold) {
  AttentionLine line = line_of({{3, 3}});
  std::fill(line.layers[0].kept.begin(), line.layers[0].kept.end(), 0);
  for (const auto& cell : draw(kept_shares(line)).drawing.cells())
    EXPECT_EQ(hex(cell.fill), hex(heat_colour(0, false)));
}

TEST(Heatmap, KernelsOfOnePositionDoNotDecideTheScale) {
  const auto legend_end = [](const std::vector<std::pair<int64_t, int64_t>>& kernels) {
    std::string last;
    for (const auto& text : draw(kept_shares(line_of(kernels))).drawing.texts) {
      if (text.text.find('%') != std::string::npos) last = text.text;
    }
    return last;
  };
  EXPECT_EQ(legend_end({{2, 2}}), "40%");
  EXPECT_EQ(legend_end({{2, 2}, {1, 1}}), "40%+");
  EXPECT_EQ(legend_end({{1, 1}}), "100%");
}

TEST(Heatmap, ChoosesTheEnds) {
  const auto names = [](size_t count, HeatmapLayers which) {
    std::string text;
    for (const auto& layer :
         choose_layers(kept_shares(line_of(std::vector<std::pair<int64_t, int64_t>>(count, {1, 1}))), which)) {
      text += layer.layer.substr(5) + " ";
    }
    return text;
  };
  EXPECT_EQ(names(11, HeatmapLayers::kEnds), "1 2 3 4 8 9 10 11 ");
  EXPECT_EQ(names(8, HeatmapLayers::kEnds), "1 2 3 4 5 6 7 8 ");
  EXPECT_EQ(names(1, HeatmapLayers::kEnds), "1 ");
  EXPECT_EQ(names(9, HeatmapLayers::kAll), "1 2 3 4 5 6 7 8 9 ");
}

TEST(Heatmap, EightMapsStandInTwoRowsOfFourLikeThePaper) {
  const auto cells = draw(kept_shares(line_of(std::vector<std::pair<int64_t, int64_t>>(8, {3, 3})))).drawing.cells();
  std::map<double, int> rows;
  for (size_t i = 0; i < cells.size(); i += 9) ++rows[cells[i].box.y];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.begin()->second, 4);
}

TEST(Heatmap, ManyAndMixedKernelsStayTidy) {
  expect_tidy(draw(kept_shares(line_of({{3, 3}}))));
  expect_tidy(draw(kept_shares(line_of({{1, 1}, {1, 3}, {3, 3}, {3, 1}, {5, 5}, {7, 7}, {2, 2}, {11, 11}, {15, 15}}))));
  expect_tidy(draw(kept_shares(line_of({{64, 64}, {3, 3}, {1, 64}}))));
  for (const int64_t side : {1, 3, 5, 7}) {
    const Drawn drawn = draw(kept_shares(line_of(std::vector<std::pair<int64_t, int64_t>>(300, {side, side}))));
    EXPECT_EQ(drawn.drawing.cells().size(), static_cast<size_t>(300 * side * side));
    expect_tidy(drawn);
  }
}

TEST(Heatmap, NamesOfTheZooAreNotShortened) {
  AttentionLine line = line_of(std::vector<std::pair<int64_t, int64_t>>(108, {3, 3}));
  for (LayerAttention& layer : line.layers) layer.name = "layer3.17.conv2";
  const Drawn drawn = draw(kept_shares(line));
  EXPECT_EQ(std::count_if(drawn.drawing.texts.begin(), drawn.drawing.texts.end(),
                          [](const auto& text) { return text.text == "layer3.17.conv2"; }),
            108);
}

TEST(Heatmap, LongNamesAreShortenedInTheMiddle) {
  AttentionLine line = line_of({{3, 3}, {3, 3}, {3, 3}});
  for (LayerAttention& layer : line.layers) layer.name = "backbone.stage3.block17.branch2." + layer.name;
  HeatmapOptions options;
  options.title = std::string(300, 'W');
  const Drawn drawn = draw(kept_shares(line), options);
  expect_tidy(drawn);
  const auto shortened = std::find_if(drawn.drawing.texts.begin(), drawn.drawing.texts.end(),
                                      [](const auto& text) { return text.text.rfind("backbo", 0) == 0; });
  ASSERT_NE(shortened, drawn.drawing.texts.end());
  EXPECT_NE(shortened->text.find(u8"…"), std::string::npos);
  EXPECT_EQ(shortened->text.substr(shortened->text.size() - 6), "layer1");
  EXPECT_NE(drawn.drawing.cells()[0].tooltip.find(line.layers[0].name), std::string::npos) << "whole in the tooltip";
}

TEST(Heatmap, SvgIsWellFormedWhateverTheNames) {
  AttentionLine line = line_of({{3, 3}, {1, 3}});
  line.layers[0].name = "a<b>&\"c\"\x01'";
  HeatmapOptions options;
  options.title = "<script>&";
  const std::string svg = heatmap_svg(kept_shares(line), options);
  expect_well_formed(svg);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  for (const char* part :
       {"viewBox=\"0 0 ", "role=\"img\"", "<title>&lt;script&gt;&amp;: kept taps per kernel position",
        "a&lt;b&gt;&amp;&quot;c&quot;\xEF\xBF\xBD'"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
}

TEST(Heatmap, CsvHasARowPerPosition) {
  AttentionLine line = line_of({{1, 3}, {2, 2}});
  line.layers[1].name = "odd, \"name\"";
  EXPECT_EQ(heatmap_csv(kept_shares(line)),
            "layer,row,column,dy,dx,kept,share\n"
            "layer1,0,0,0,-1,1,0.16666667\n"
            "layer1,0,1,0,0,2,0.33333333\n"
            "layer1,0,2,0,1,3,0.5\n"
            "\"odd, \"\"name\"\"\",0,0,-1,-1,1,0.1\n"
            "\"odd, \"\"name\"\"\",0,1,-1,0,2,0.2\n"
            "\"odd, \"\"name\"\"\",1,0,0,-1,3,0.3\n"
            "\"odd, \"\"name\"\"\",1,1,0,0,4,0.4\n");
  const std::string means = heatmap_csv(mean_attention(line));
  EXPECT_NE(means.find("layer1,0,0,0,-1,,0.33333333\n"), std::string::npos) << means;
}

TEST(Heatmap, RefusesSharesThatDoNotFit) {
  expect_error(ErrorKind::kUsage, "at least one layer", [] { heatmap_svg({}, {}); });
  PositionShares layer{"x", 3, 3, std::vector<double>(8, 0.125), {}};
  expect_error(ErrorKind::kUsage, "each of 3x3 positions, got 8 fractions", [&] { heatmap_csv({layer}); });
  layer.share.push_back(std::nan(""));
  expect_error(ErrorKind::kUsage, "fractions of 0 to 1", [&] { heatmap_raster({layer}, {}); });
  const auto huge = kept_shares(line_of(std::vector<std::pair<int64_t, int64_t>>(3000, {15, 15})));
  expect_error(ErrorKind::kUsage, "SVG has no such limit", [&] { heatmap_raster(huge, {}); });
}

TEST(ShareScale, EndsOnARoundShare) {
  const auto expect_scale = [](double largest, double top, double step) {
    const ShareScale scale = ShareScale::covering(largest);
    EXPECT_NEAR(scale.top, top, 1e-12) << largest;
    EXPECT_NEAR(scale.step, step, 1e-12) << largest;
  };
  expect_scale(1, 1, 0.2);
  expect_scale(0.15, 0.15, 0.05);
  expect_scale(0.201, 0.25, 0.05);
  expect_scale(1.0 / 9, 0.15, 0.05);
  expect_scale(1.0 / 49, 0.025, 0.005);
  expect_scale(0, 1, 0.2);
}

}  // namespace
}  // namespace onetap
