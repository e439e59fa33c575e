// Learning rate and temperature as functions of the step: nothing to remember, nothing to resume.
#pragma once

#include "onetap/recipe/recipe.h"

namespace onetap {

class Schedule {
 public:
  Schedule(const Recipe& recipe, int64_t steps_per_epoch);

  int64_t total_steps() const { return total_steps_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // For the optimiser step number `step`, counted from 0.
  double learning_rate(int64_t step) const;

  // T0 * alpha^step with alpha = (T1/T0)^(1/steps): T0 at the first step, T1 after the last one.
  double temperature(int64_t step) const;

 private:
  Recipe recipe_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;
  std::vector<int64_t> milestones_;  // of the learning rate; none: every lr_every epochs
  double alpha_;
};

}  // namespace onetap
