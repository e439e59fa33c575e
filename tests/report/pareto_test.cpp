#include "onetap/report/pareto.h"

#include "onetap/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {
namespace {

using Place = CostAt::Place;

std::vector<size_t> ids(const std::vector<TradeOff>& front) {
  std::vector<size_t> list;
  for (const TradeOff& point : front) list.push_back(point.id);
  return list;
}

TEST(ParetoFront, KeepsWhatNoOtherBeats) {
  // 1 is as dear as 2 and less accurate; 3 is dearer and less accurate than 2; 4 is the best; 0 the cheapest.
  EXPECT_EQ(ids(pareto_front({{1, 90, 0}, {2, 91, 1}, {2, 92, 2}, {3, 91.5, 3}, {4, 95, 4}})),
            (std::vector<size_t>{0, 2, 4}));
  // As accurate and dearer is beaten, too.
  EXPECT_EQ(ids(pareto_front({{2, 90, 0}, {1, 90, 1}})), std::vector<size_t>{1});
  EXPECT_EQ(ids(pareto_front({{5, 80, 0}})), std::vector<size_t>{0});
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(ParetoFront, HasEqualPointsOnce) {
  EXPECT_EQ(ids(pareto_front({{1, 90, 7}, {1, 90, 3}, {1, 90, 5}})), std::vector<size_t>{3});
}

TEST(ParetoFront, LeavesOutWhatHasNoPlace) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      ids(pareto_front({{nan, 99, 0}, {1, nan, 1}, {0, 99, 2}, {-1, 99, 3}, {inf, 99, 4}, {1, inf, 5}, {2, 90, 6}})),
      std::vector<size_t>{6});
}

// The definition, pair by pair, over random points on a grid so coarse that many are equal.
TEST(ParetoFront, IsWhatTheDefinitionSays) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Random random(seed, Purpose::kRandomNet);
    std::vector<TradeOff> points;
    const size_t count = 1 + seed % 12;
    for (size_t i = 0; i < count; ++i) {
      points.push_back({std::floor(random.uniform(1, 6)), std::floor(random.uniform(0, 5)), i});
    }
    std::vector<size_t> expected;
    for (const TradeOff& a : points) {
      const bool beaten = std::any_of(points.begin(), points.end(), [&](const TradeOff& b) {
        const bool as_good = b.cost <= a.cost && b.accuracy >= a.accuracy;
        const bool better = b.cost < a.cost || b.accuracy > a.accuracy;
        return as_good && (better || b.id < a.id);
      });
      if (!beaten) expected.push_back(a.id);
    }
    std::vector<size_t> got = ids(pareto_front(points));
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, expected) << "seed " << seed;
  }
}

TEST(CostAt, InterpolatesTheLogarithmOfTheCost) {
  const auto front = pareto_front({{1, 90, 0}, {4, 92, 1}, {32, 95, 2}});
  // Half way in accuracy is the geometric mean: sqrt(1 * 4). A third of the way from 4 to 32 = 4 * 8: 4 * 2.
  EXPECT_NEAR(cost_at(front, 91).cost, 2, 1e-12);
  EXPECT_NEAR(cost_at(front, 93).cost, 8, 1e-12);
  EXPECT_NEAR(cost_at(front, 94).cost, 16, 1e-12);
  EXPECT_EQ(cost_at(front, 91).place, Place::kInside);
}

TEST(CostAt, IsAPointsOwnCostThere) {
  const auto front = pareto_front({{1, 90, 0}, {4, 92, 1}, {32, 95, 2}});
  for (const auto& point : front) {
    EXPECT_EQ(cost_at(front, point.accuracy).place, Place::kInside);
    EXPECT_EQ(cost_at(front, point.accuracy).cost, point.cost);
  }
}

TEST(CostAt, SaysWhereNothingIsKnown) {
  const auto front = pareto_front({{1, 90, 0}, {4, 92, 1}});
  EXPECT_EQ(cost_at(front, 92.01).place, Place::kAbove);
  EXPECT_EQ(cost_at(front, 89.99).place, Place::kBelow);
  EXPECT_EQ(cost_at(front, 89.99).cost, 1) << "the cheapest point has that accuracy and more";
  EXPECT_EQ(cost_at({}, 90).place, Place::kNone);
  EXPECT_EQ(cost_at(front, std::numeric_limits<double>::quiet_NaN()).place, Place::kNone);
  const auto one = pareto_front({{3, 90, 0}});
  EXPECT_EQ(cost_at(one, 90).cost, 3);
  EXPECT_EQ(cost_at(one, 91).place, Place::kAbove);
}

}  // namespace
}  // namespace onetap
