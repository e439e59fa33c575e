#include "onetap/report/pareto.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace onetap {

std::vector<TradeOff> pareto_front(std::vector<TradeOff> points) {
  const auto has_place = [](const TradeOff& point) {
    return std::isfinite(point.cost) && point.cost > 0 && std::isfinite(point.accuracy);
  };
  points.erase(std::remove_if(points.begin(), points.end(), [&](const TradeOff& p) { return !has_place(p); }),
               points.end());
  // Cheapest first; of equal costs the most accurate, which beats the others.
  std::sort(points.begin(), points.end(), [](const TradeOff& a, const TradeOff& b) {
    return std::make_tuple(a.cost, -a.accuracy, a.id) < std::make_tuple(b.cost, -b.accuracy, b.id);
  });
  std::vector<TradeOff> front;
  for (const TradeOff& point : points) {
    if (front.empty() || point.accuracy > front.back().accuracy) front.push_back(point);
  }
  return front;
}

CostAt cost_at(const std::vector<TradeOff>& front, double accuracy) {
  using Place = CostAt::Place;
  if (front.empty() || !std::isfinite(accuracy)) return {};
  if (accuracy > front.back().accuracy) return {Place::kAbove, 0};
  if (accuracy < front.front().accuracy) return {Place::kBelow, front.front().cost};
  const auto above =
      std::find_if(front.begin(), front.end(), [&](const TradeOff& p) { return p.accuracy >= accuracy; });
  if (above->accuracy == accuracy) return {Place::kInside, above->cost};
  const TradeOff& below = *std::prev(above);
  const double part = (accuracy - below.accuracy) / (above->accuracy - below.accuracy);
  return {Place::kInside, below.cost * std::pow(above->cost / below.cost, part)};
}

}  // namespace onetap
