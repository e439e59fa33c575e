// Values of an int8 network whose scales must be equal: a step that copies or takes maxima has one scale for what it
// reads and what it gives, a concatenation one for all its inputs.
#pragma once

#include "onetap/plan/execution_plan.h"

#include <vector>

namespace onetap {

class ScaleGroups {
 public:
  // `types` of the plan's values, as int8_types() has them.
  ScaleGroups(const ExecutionPlan& plan, const std::vector<DType>& types);

  // The value that stands for the group of a value.
  int root(int value) const;
  // What the largest magnitude of the group is, in its scale. Where a group has signed values, unsigned ones are copied
  // among them, and have no more steps than those.
  int steps(int value) const { return has_signed_[static_cast<size_t>(root(value))] ? 127 : 255; }

 private:
  std::vector<int> parent_;
  std::vector<bool> has_signed_;  // of groups, at their roots
};

}  // namespace onetap
