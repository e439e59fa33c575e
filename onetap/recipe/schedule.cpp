#include "onetap/recipe/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {

Schedule::Schedule(const Recipe& recipe, int64_t steps_per_epoch)
    : recipe_(recipe),
      steps_per_epoch_(steps_per_epoch),
      planned_steps_(steps_per_epoch * recipe.epochs),
      total_steps_(steps_per_epoch * recipe.all_epochs()),
      falling_steps_(std::max(1.0, std::min(recipe.t_end, recipe.harden) * static_cast<double>(planned_steps_))),
      hard_step_(recipe.harden < 1
                     ? static_cast<int64_t>(std::ceil(recipe.harden * static_cast<double>(planned_steps_)))
                     : std::numeric_limits<int64_t>::max()),
      alpha_(recipe.alpha.value_or(std::pow(recipe.t1 / recipe.t0, 1.0 / falling_steps_))) {
  for (const double epoch : recipe_milestones(recipe)) {
    milestones_.push_back(epoch * static_cast<double>(steps_per_epoch));
  }
}

int64_t Schedule::drops(int64_t step) const {
  if (!milestones_.empty()) {
    const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), static_cast<double>(step));
    return next - milestones_.begin();
  }
  const int64_t every = recipe_.lr_every.value_or(std::max<int64_t>(1, (recipe_.epochs + 2) / 3));
  return step / steps_per_epoch_ / every;
}

double Schedule::learning_rate(int64_t step) const {
  if (step < planned_steps_ || recipe_.extend == 0) return planned_rate(step);
  return recipe_.extend_lr.value_or(planned_rate(planned_steps_ - 1));
}

double Schedule::planned_rate(int64_t step) const {
  const double warmup_steps = recipe_.warmup_epochs * static_cast<double>(steps_per_epoch_);
  if (static_cast<double>(step) < warmup_steps) {
    return recipe_.lr * (static_cast<double>(step) + 1.0) / (warmup_steps + 1.0);
  }
  if (recipe_.schedule == LrSchedule::kCosine) {
    constexpr double kPi = 3.14159265358979323846;
    const double done =
        (static_cast<double>(step) - warmup_steps) / std::max(1.0, static_cast<double>(planned_steps_) - warmup_steps);
    return recipe_.lr_final + (recipe_.lr - recipe_.lr_final) * 0.5 * (1.0 + std::cos(kPi * done));
  }
  return recipe_.lr * std::pow(recipe_.lr_factor, static_cast<double>(drops(step)));
}

double Schedule::temperature(int64_t step) const {
  if (step >= hard_step_) return kHardTemperature;
  return std::max(recipe_.t_floor, recipe_.t0 * std::pow(alpha_, std::min(static_cast<double>(step), falling_steps_)));
}

}  // namespace onetap
