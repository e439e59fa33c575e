// Trade-offs between a cost and accuracy: which of some networks are worth having, and what an accuracy between two of
// them would cost.
#pragma once

#include <cstddef>
#include <vector>

namespace onetap {

struct TradeOff {
  double cost = 0;      // milliseconds, bytes, ...: less is better
  double accuracy = 0;  // more is better
  size_t id = 0;        // whose it is: the caller's number
};

// The Pareto front: those that no other beats, being at least as good in both and better in one. Costs and accuracies
// ascend. Of several that are equal in both the one with the smallest id stays. What is not finite, or costs nothing or
// less, is left out.
std::vector<TradeOff> pareto_front(std::vector<TradeOff> points);

// What a front asks for an accuracy.
struct CostAt {
  enum class Place {
    kNone,    // an empty front
    kInside,  // between two points: interpolated, or a point itself
    kBelow,   // less accurate than all: the cheapest point costs this and is more accurate, so this is an upper bound
    kAbove,   // more accurate than all: not reached
  } place = Place::kNone;
  double cost = 0;  // of kInside and kBelow
};

// Between neighbours of a front the logarithm of the cost is linear in the accuracy: halving the cost is worth the same
// everywhere, as the charts with their logarithmic axes draw it. `front` is a result of pareto_front().
CostAt cost_at(const std::vector<TradeOff>& front, double accuracy);

}  // namespace onetap
