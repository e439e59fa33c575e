#include "onetap/quant/scale_groups.h"

#include "onetap/quant/int8_plan.h"

#include <numeric>

namespace onetap {

ScaleGroups::ScaleGroups(const ExecutionPlan& plan, const std::vector<DType>& types)
    : parent_(plan.values.size()), has_signed_(plan.values.size(), false) {
  std::iota(parent_.begin(), parent_.end(), 0);
  for (const PlannedStep& step : plan.steps) {
    if (!keeps_scale(step.node->op)) continue;
    for (const int input : step.inputs) parent_[static_cast<size_t>(root(input))] = root(step.output);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == DType::kI8) has_signed_[static_cast<size_t>(root(static_cast<int>(i)))] = true;
  }
}

int ScaleGroups::root(int value) const {
  while (parent_[static_cast<size_t>(value)] != value) value = parent_[static_cast<size_t>(value)];
  return value;
}

}  // namespace onetap
