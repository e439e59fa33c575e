#include "onetap/train/sgd.h"

namespace onetap {

Sgd::Sgd(const torch::nn::Module& module, const SgdOptions& options, const nn::ParameterRules& rules)
    : Optimizer(module, rules), options_(options) {
  for (const auto& [name, parameter] : parameters_) momentum_.emplace_back(name, torch::zeros_like(parameter));
}

void Sgd::step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor& parameter = parameters_[i].second;
    torch::Tensor update = parameter.grad();
    if (!update.defined()) continue;
    const nn::ParameterRule& rule = rules_[i];
    if (rule.unit_rows) update = nn::unit_rows(update);
    const double decay = options_.weight_decay * rule.decay;
    if (decay != 0) update = update.add(parameter, decay);
    if (options_.momentum != 0) {
      torch::Tensor& velocity = momentum_[i].second;
      velocity.mul_(options_.momentum).add_(update);
      update = options_.nesterov ? update.add(velocity, options_.momentum) : velocity;
    }
    parameter.add_(update, -learning_rate * rule.rate);
  }
}

void Sgd::restart() {
  for (auto& [name, velocity] : momentum_) velocity.zero_();
}

}  // namespace onetap
