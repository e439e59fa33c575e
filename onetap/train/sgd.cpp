#include "onetap/train/sgd.h"

namespace onetap {

Sgd::Sgd(const torch::nn::Module& module, const SgdOptions& options) : options_(options) {
  for (const auto& item : module.named_parameters()) {
    parameters_.emplace_back(item.key(), item.value());
    momentum_.emplace_back(item.key(), torch::zeros_like(item.value()));
  }
}

void Sgd::zero_grad() {
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad() = torch::Tensor();
}

void Sgd::step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor& parameter = parameters_[i].second;
    torch::Tensor update = parameter.grad();
    if (!update.defined()) continue;
    if (options_.weight_decay != 0) update = update.add(parameter, options_.weight_decay);
    if (options_.momentum != 0) {
      torch::Tensor& velocity = momentum_[i].second;
      velocity.mul_(options_.momentum).add_(update);
      update = options_.nesterov ? update.add(velocity, options_.momentum) : velocity;
    }
    parameter.add_(update, -learning_rate);
  }
}

void Sgd::restart() {
  for (auto& [name, velocity] : momentum_) velocity.zero_();
}

}  // namespace onetap
