#include "onetap/train/weight_average.h"

#include <algorithm>

namespace onetap {

WeightAverage::WeightAverage(const nn::GraphModule& module, double decay) : decay_(decay) {
  if (!active()) return;
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : nn::state_of(*module)) {
    const torch::Tensor value = tensor.detach();
    if (!value.is_floating_point()) {
      state_.emplace_back(name, value);
      continue;
    }
    state_.emplace_back(name, value.clone());
    values_.push_back(value);
    averages_.push_back(state_.back().second);
  }
}

void WeightAverage::update(int64_t step) {
  if (!active()) return;
  const torch::NoGradGuard no_grad;
  // Young averages are short, or the random start would stay in them for long.
  const auto age = static_cast<double>(step);
  lerp_all(averages_, values_, 1 - std::min(decay_, (1 + age) / (10 + age)));
}

void WeightAverage::take_present() {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < values_.size(); ++i) averages_[i].copy_(values_[i]);
}

void WeightAverage::take_present(const std::vector<std::string>& names) {
  const torch::NoGradGuard no_grad;
  size_t i = 0;
  for (const auto& [name, tensor] : state_) {
    if (!tensor.is_floating_point()) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) averages_[i].copy_(values_[i]);
    ++i;
  }
}

WeightAverage::Scope::Scope(const WeightAverage& average) : average_(average) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < average.values_.size(); ++i) {
    own_.push_back(average.values_[i].clone());
    torch::Tensor(average.values_[i]).copy_(average.averages_[i]);
  }
}

WeightAverage::Scope::~Scope() {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < own_.size(); ++i) torch::Tensor(average_.values_[i]).copy_(own_[i]);
}

}  // namespace onetap
