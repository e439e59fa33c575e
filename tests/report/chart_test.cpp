#include "onetap/report/chart.h"

#include "onetap/report/paper_heatmaps.h"
#include "onetap/report/svg_canvas.h"
#include "tests/support/support.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <regex>

namespace onetap {
namespace {

using Kind = ChartSeries::Kind;

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Where the markers of a colour are: the starts of paths that close themselves.
std::vector<std::pair<double, double>> markers(const std::string& svg, const std::string& fill) {
  std::vector<std::pair<double, double>> places;
  const std::regex pattern("<path d=\"M([0-9.]+) ([0-9.]+)[^\"]*Z\"[^>]*fill=\"" + fill + "\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), pattern), end; at != end; ++at) {
    places.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  }
  return places;
}

TEST(Chart, PointsLieWhereTheyBelong) {
  const std::string svg = chart_svg("T", {{"x", "y", true, {{"one", Kind::kOurs, {{1, 90}, {10, 92}, {100, 94}}}}}});
  auto places = markers(svg, "#0072b2");
  ASSERT_EQ(places.size(), 4u) << "three, and one in the legend";
  // Decades are as wide as each other; a higher accuracy is higher up.
  EXPECT_NEAR(places[1].first - places[0].first, places[2].first - places[1].first, 0.02);
  EXPECT_NEAR(places[0].second - places[1].second, places[1].second - places[2].second, 0.02);
  EXPECT_GT(places[0].second, places[1].second);
}

TEST(Chart, OursAreFilledAndPublishedHollow) {
  const std::string svg = chart_svg(
      "T",
      {{"x", "y", true, {{"a", Kind::kOurs, {{1, 90, "ours <1>"}}}, {"a", Kind::kPublished, {{2, 91}, {3, 92}}}}}});
  EXPECT_EQ(markers(svg, "#0072b2").size(), 2u);  // and one in the legend
  EXPECT_EQ(occurrences(svg, "stroke-dasharray"), 1u) << "the published curve";
  EXPECT_EQ(occurrences(svg, "ours &lt;1&gt;"), 1u);
  EXPECT_EQ(occurrences(svg, ">a</text>"), 1u) << "one entry for both";
}

TEST(Chart, SaysWhatFilledAndHollowMean) {
  const std::vector<ChartPanel> panels = {{"x", "y", true, {{"a", Kind::kOurs, {{1, 90}}}}}};
  EXPECT_EQ(occurrences(chart_svg("T", panels), ">filled: ours; hollow: published</text>"), 1u);
  const std::string other = chart_svg("T", panels, "filled: <front>");
  EXPECT_EQ(occurrences(other, ">filled: &lt;front&gt;</text>"), 1u);
  EXPECT_EQ(occurrences(other, "published"), 0u);
}

TEST(Chart, LargeNumbersOfAnAxisHaveUnits) {
  const std::string svg = chart_svg("T", {{"x", "y", true, {{"a", Kind::kOurs, {{4e4, 90}, {3e6, 91}}}}}});
  EXPECT_EQ(occurrences(svg, ">100 k</text>"), 1u);
  EXPECT_EQ(occurrences(svg, ">1 M</text>"), 1u);
  EXPECT_EQ(occurrences(svg, ">100000</text>") + occurrences(svg, ">0.1 M</text>"), 0u);
}

TEST(Chart, LeavesOutWhatCannotBeDrawn) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg =
      chart_svg("T", {{"x", "y", true, {{"a", Kind::kOurs, {{0, 90}, {-1, 90}, {nan, 90}, {5, nan}, {5, 91}}}}}});
  EXPECT_EQ(markers(svg, "#0072b2").size(), 2u);
  EXPECT_EQ(occurrences(svg, "nan"), 0u);
  EXPECT_EQ(occurrences(svg, "inf"), 0u);
  const std::string empty = chart_svg("T", {{"x", "y", true, {}}});
  EXPECT_EQ(occurrences(empty, "nan"), 0u);
  EXPECT_EQ(occurrences(empty, ">no points yet</text>"), 1u);
  EXPECT_EQ(occurrences(empty, ">100</text>"), 0u) << "no ticks that nobody asked for";
  EXPECT_EQ(occurrences(svg, "no points yet"), 0u);
  EXPECT_EQ(occurrences(chart_svg("T", {}), "</svg>"), 1u);
}

TEST(Chart, AccuraciesLieBetween0And100) {
  const std::string svg = chart_svg("T", {{"x", "y", true, {{"a", Kind::kOurs, {{1, 1.3}, {2, 95}}}}}});
  EXPECT_EQ(occurrences(svg, ">-"), 0u);
  EXPECT_EQ(occurrences(svg, ">0</text>"), 1u);
  EXPECT_EQ(occurrences(svg, ">100</text>"), 1u);
  EXPECT_EQ(occurrences(svg, ">120</text>"), 0u);
}

TEST(Chart, AnAxisCanBeginAboveSomePoints) {
  const std::vector<ChartSeries> series = {{"a", Kind::kOurs, {{1, 83}, {2, 92}, {3, 95}}}};
  const std::string svg = chart_svg("T", {{"x", "y", true, series, 90.0}});
  EXPECT_EQ(markers(svg, "#0072b2").size(), 3u) << "two, and one in the legend";
  EXPECT_EQ(occurrences(svg, ">90</text>"), 1u);
  EXPECT_EQ(occurrences(svg, ">89</text>"), 0u);
}

TEST(Heatmap, PicturesCanHaveOneScale) {
  const std::vector<PositionShares> maps = {{"a", 1, 2, {0.4, 0.6}, {}}};
  HeatmapOptions options;
  EXPECT_EQ(occurrences(heatmap_svg(maps, options), ">100%</text>"), 0u);
  options.covers = 1;
  EXPECT_EQ(occurrences(heatmap_svg(maps, options), ">100%</text>"), 1u);
}

TEST(StackedSvg, PutsPicturesBelowEachOther) {
  const std::string stacked =
      stacked_svg("both", {SvgCanvas(100, 30, "a").finish(), SvgCanvas(80, 50.5, "b").finish()});
  EXPECT_EQ(occurrences(stacked, "<svg "), 3u);
  EXPECT_EQ(occurrences(stacked, "width=\"100\" height=\"80.5\""), 1u);
  EXPECT_EQ(occurrences(stacked, "<svg y=\"30\""), 1u);
}

// 0.0604 and 0.3172 are the ends of the figure's scale; the shades are those in the paper's source.
TEST(PaperHeatmaps, AreTheShadesOfTheFigures) {
  const auto maps = paper_heatmaps("resnet20");
  ASSERT_EQ(maps.size(), 8u);
  EXPECT_EQ(maps[0].layer, "layer1.0.conv1");
  EXPECT_EQ(maps[7].layer, "layer3.2.conv2");
  EXPECT_EQ(paper_heatmaps("resnet56")[4].layer, "layer3.7.conv1");
  // The last layer has 0.2925 in its first corner and 0 in the centre.
  EXPECT_NEAR(maps[7].share[0] / maps[7].share[4], (0.0604 + 0.2568 * 0.29254302) / 0.0604, 1e-3);
  for (const char* name : {"resnet20", "resnet20-centre", "resnet56", "resnet20-5x5"}) {
    for (const PositionShares& map : paper_heatmaps(name)) {
      EXPECT_EQ(static_cast<int64_t>(map.share.size()), map.kernel_h * map.kernel_w);
      EXPECT_NEAR(std::accumulate(map.share.begin(), map.share.end(), 0.0), 1, 1e-12);
    }
  }
  EXPECT_EQ(paper_heatmaps("resnet20-5x5")[0].kernel_h, 5);
  EXPECT_NEAR(paper_heatmaps("resnet20-centre")[0].share[4], 0.3172 / (9 * 0.0604 + 0.2568 * 1.5246), 1e-3);
}

}  // namespace
}  // namespace onetap
