#include "tools/onetap/frontier_results.h"

#include "onetap/base/text.h"
#include "onetap/report/chart.h"
#include "tools/onetap/spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>

namespace onetap::tool {
namespace {

// For files and links to them: "shapes:test=40" becomes "shapes-test-40". A number tells paths apart that read alike
// then.
std::string file_name(const std::string& data, size_t number) {
  constexpr size_t kLongest = 60;
  std::string name;
  for (const char c : data) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  if (data.find('/') == std::string::npos && name.size() <= kLongest) return name;
  return fmt::format("{}-{}", name.substr(name.size() - std::min(name.size(), kLongest)), number + 1);
}

// Interpolated costs are no whole numbers.
std::string whole_text(double cost) {
  return with_thousands(std::round(cost));
}

void find_fronts(FrontierKind& kind) {
  std::stable_sort(kind.points.begin(), kind.points.end(),
                   [](const FrontierPoint* a, const FrontierPoint* b) { return a->accuracy < b->accuracy; });
  for (const CostMeasure& measure : cost_measures()) {
    std::vector<TradeOff> points;
    for (size_t i = 0; i < kind.points.size(); ++i) {
      if (const auto cost = measure.of(*kind.points[i])) points.push_back({*cost, kind.points[i]->accuracy, i});
    }
    kind.fronts.push_back(pareto_front(std::move(points)));
  }
}

// Ours before others, so that a kind has its colour in the figures where others have no points; dense first.
std::vector<FrontierKind> find_kinds(const std::vector<const FrontierPoint*>& points) {
  std::vector<FrontierKind> kinds;
  for (const FrontierPoint* point : points) {
    const std::string name = point->kind_name();
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const FrontierKind& k) { return k.name == name; });
    if (kind == kinds.end()) {
      kind = kinds.insert(kinds.end(),
                          FrontierKind{name, point->is_dense(), point->is_int8(), point->run_by == "onetap", {}, {}});
    }
    kind->points.push_back(point);
  }
  std::sort(kinds.begin(), kinds.end(), [](const FrontierKind& a, const FrontierKind& b) {
    return std::make_tuple(!a.is_ours, !a.is_dense, a.name) < std::make_tuple(!b.is_ours, !b.is_dense, b.name);
  });
  for (FrontierKind& kind : kinds) find_fronts(kind);
  return kinds;
}

// The same network by the other runtime.
std::optional<double> peer_milliseconds(const FrontierData& data, const FrontierPoint& dense) {
  for (const FrontierKind& kind : data.kinds) {
    if (kind.is_ours) continue;
    for (const FrontierPoint* point : kind.points) {
      if (point->name == dense.name) return point->milliseconds.median;
    }
  }
  return std::nullopt;
}

std::vector<EqualAccuracy> equal_accuracies(const FrontierData& data) {
  std::vector<EqualAccuracy> list;
  for (const FrontierKind& dense : data.kinds) {
    if (!dense.is_dense || !dense.is_ours) continue;
    for (const FrontierPoint* point : dense.points) {
      for (const FrontierKind& kind : data.kinds) {
        const bool is_other = !kind.is_dense || (kind.is_ours && kind.is_int8 && !dense.is_int8);
        if (!is_other || (dense.is_int8 && !kind.is_int8)) continue;
        EqualAccuracy equal{point, &kind, {}, peer_milliseconds(data, *point)};
        for (const auto& front : kind.fronts) equal.costs.push_back(cost_at(front, point->accuracy));
        list.push_back(std::move(equal));
      }
    }
  }
  return list;
}

std::string ratio_text(const CostAt& at, std::optional<double> dense, const CostMeasure& measure) {
  if (at.place == CostAt::Place::kAbove) return "not reached";
  if (at.place == CostAt::Place::kNone || !dense || *dense <= 0) return "";
  const char* bound = at.place == CostAt::Place::kBelow ? "≤ " : "";
  return fmt::format("{}{:.2f} ({})", bound, at.cost / *dense, measure.text(at.cost));
}

}  // namespace

const std::vector<CostMeasure>& cost_measures() {
  static const std::vector<CostMeasure> measures = {
      {"milliseconds", "ms", "milliseconds per image",
       [](const FrontierPoint& p) { return std::optional(p.milliseconds.median); },
       [](double cost) { return fmt::format("{:.3f}", cost); }},
      {"bytes", "bytes", "bytes of the file", [](const FrontierPoint& p) { return p.bytes; }, whole_text},
      {"macs", "MACs", "multiply-accumulates per image", [](const FrontierPoint& p) { return p.macs; }, whole_text},
      {"memory", "memory", "bytes of memory: weights, activations, scratch",
       [](const FrontierPoint& p) { return p.memory; }, whole_text},
  };
  return measures;
}

bool FrontierKind::is_on_front(size_t point, size_t measure) const {
  const auto& front = fronts[measure];
  return std::any_of(front.begin(), front.end(), [&](const TradeOff& trade) { return trade.id == point; });
}

std::vector<FrontierData> group_by_data(const std::vector<FrontierPoint>& points) {
  std::vector<FrontierData> list;
  std::vector<std::vector<const FrontierPoint*>> of_data;
  for (const FrontierPoint& point : points) {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const FrontierData& d) { return d.name == point.data; });
    const auto at = static_cast<size_t>(found - list.begin());
    if (found == list.end()) {
      list.push_back({point.data, "", {}, {}});
      of_data.emplace_back();
    }
    of_data[at].push_back(&point);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].file_name = file_name(list[i].name, i);
    list[i].kinds = find_kinds(of_data[i]);
  }
  // Once the list is whole: they refer to its kinds.
  for (FrontierData& data : list) data.equal = equal_accuracies(data);
  return list;
}

Table FrontierData::points_table() const {
  using A = Table::Align;
  std::vector<Table::Column> columns = {{"name"}, {"network"}, {"kind"}, {"accuracy", A::kRight}, {"of"}};
  for (const CostMeasure& measure : cost_measures()) columns.push_back({measure.title, A::kRight});
  columns.push_back({"kept weights", A::kRight});
  columns.push_back({"on the front in"});
  Table table(columns);
  for (const FrontierKind& kind : kinds) {
    for (size_t i = 0; i < kind.points.size(); ++i) {
      const FrontierPoint& point = *kind.points[i];
      std::vector<std::string> fronts;
      std::vector<std::string> cells = {
          point.name, point.network, kind.name, accuracy_text({point.accuracy, point.accuracy_sd}),
          point.seeds > 1 ? fmt::format("{}, {} seeds", point.accuracy_of, point.seeds) : point.accuracy_of};
      for (size_t m = 0; m < cost_measures().size(); ++m) {
        const auto cost = cost_measures()[m].of(point);
        cells.push_back(cost ? cost_measures()[m].text(*cost) : "");
        if (kind.is_on_front(i, m)) fronts.emplace_back(cost_measures()[m].title);
      }
      cells.push_back(point.weights ? whole_text(*point.weights) : "");
      cells.push_back(fronts.size() == cost_measures().size() ? "all" : join(fronts, ", "));
      table.add(std::move(cells));
    }
  }
  return table;
}

Table FrontierData::equal_table() const {
  using A = Table::Align;
  const bool has_peer = std::any_of(equal.begin(), equal.end(),
                                    [](const EqualAccuracy& row) { return row.peer_milliseconds.has_value(); });
  std::vector<Table::Column> columns = {{"dense"}, {"network"}, {"accuracy", A::kRight}, {"kind"}};
  for (const CostMeasure& measure : cost_measures()) columns.push_back({measure.title, A::kRight});
  if (has_peer) columns.push_back({"ms / ONNX Runtime's", A::kRight});
  Table table(columns);
  for (const EqualAccuracy& row : equal) {
    std::vector<std::string> cells = {row.dense->name, row.dense->network, fmt::format("{:.2f} %", row.dense->accuracy),
                                      row.kind->name};
    for (size_t m = 0; m < cost_measures().size(); ++m) {
      cells.push_back(ratio_text(row.costs[m], cost_measures()[m].of(*row.dense), cost_measures()[m]));
    }
    // Milliseconds are the first measure.
    if (has_peer) cells.push_back(ratio_text(row.costs.front(), row.peer_milliseconds, cost_measures().front()));
    table.add(std::move(cells));
  }
  return table;
}

std::string FrontierData::figure(size_t measure) const {
  const CostMeasure& cost = cost_measures()[measure];
  ChartPanel panel{cost.axis, "accuracy, %", false, {}};
  double least = 0, most = 0;
  for (const FrontierKind& kind : kinds) {
    ChartSeries front{kind.name, ChartSeries::Kind::kOurs, {}, true};
    ChartSeries others{kind.name, ChartSeries::Kind::kPublished, {}, false};
    for (size_t i = 0; i < kind.points.size(); ++i) {
      const FrontierPoint& point = *kind.points[i];
      const auto x = cost.of(point);
      if (!x) continue;
      least = least == 0 ? *x : std::min(least, *x);
      most = std::max(most, *x);
      const std::string about =
          fmt::format("{} ({}): {}, {} {}", point.name, kind.name, accuracy_text({point.accuracy, point.accuracy_sd}),
                      cost.text(*x), cost.title);
      (kind.is_on_front(i, measure) ? front : others).points.push_back({*x, point.accuracy, about, point.accuracy_sd});
    }
    if (!front.points.empty()) panel.series.push_back(std::move(front));
    if (!others.points.empty()) panel.series.push_back(std::move(others));
  }
  constexpr double kWide = 3;  // costs that differ by less are as clear on a plain axis
  panel.log_x = most > kWide * least;
  return chart_svg(fmt::format("{}: accuracy against {}", name, cost.axis), {panel},
                   "filled and joined: the Pareto front of a kind; hollow: the other points of the kind");
}

}  // namespace onetap::tool
