// Learning rate and temperature as functions of the step: nothing to remember, nothing to resume.
#pragma once

#include "onetap/recipe/recipe.h"

#include <cmath>
#include <vector>

namespace onetap {

class Schedule {
 public:
  Schedule(const Recipe& recipe, int64_t steps_per_epoch);

  int64_t total_steps() const { return total_steps_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // At this temperature attention is the hard max: positions whose logits lie more than 1e-4 sd apart are told apart
  // to the last bit of a float, and nearer ones by their first gradient.
  static constexpr double kHardTemperature = 1e-6;

  // The first step at which attention is hard; none: beyond the last one.
  int64_t hard_step() const { return hard_step_; }

  // The first step at which the temperature has reached its end.
  int64_t settled_step() const { return static_cast<int64_t>(std::ceil(falling_steps_)); }

  // For the optimiser step number `step`, counted from 0. Epochs by which a run was extended keep one rate.
  double learning_rate(int64_t step) const;

  // T0 * alpha^step with alpha = (T1/T0)^(1/steps): T0 at the first step, T1 after the last one. With t_end, those are
  // the first so many steps, and the temperature stays as it is then. With harden, it falls until then at the
  // latest and is kHardTemperature from there on.
  double temperature(int64_t step) const;

 private:
  int64_t drops(int64_t step) const;
  double planned_rate(int64_t step) const;

  Recipe recipe_;
  int64_t steps_per_epoch_;
  int64_t planned_steps_;  // of the schedule, without those of `extend`
  int64_t total_steps_;
  double falling_steps_;  // of the temperature
  int64_t hard_step_;
  std::vector<double> milestones_;  // steps
  double alpha_;
};

}  // namespace onetap
