#include "onetap/train/adamw.h"

#include <cmath>

namespace onetap {

AdamW::AdamW(const torch::nn::Module& module, const AdamWOptions& options, const nn::ParameterRules& rules)
    : Optimizer(module, rules), options_(options) {
  // Beside the parameters, where ranks exchange what they have.
  const torch::Device device = parameters_.empty() ? torch::Device(torch::kCPU) : parameters_.front().second.device();
  state_.emplace_back("steps", torch::zeros({1}, torch::TensorOptions(torch::kInt64).device(device)));
  for (const auto& [name, parameter] : parameters_) {
    state_.emplace_back(name + ".mean", torch::zeros_like(parameter));
    state_.emplace_back(name + ".square", torch::zeros_like(parameter));
  }
}

void AdamW::step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& steps = state_.front().second;
  steps.add_(1);
  const auto count = static_cast<double>(steps.item<int64_t>());
  const double mean_part = 1 - std::pow(options_.beta1, count), square_part = 1 - std::pow(options_.beta2, count);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor& parameter = parameters_[i].second;
    torch::Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    const nn::ParameterRule& rule = rules_[i];
    if (rule.unit_rows) gradient = nn::unit_rows(gradient);
    const double rate = learning_rate * rule.rate;
    const double decay = options_.weight_decay * rule.decay;
    if (decay != 0) parameter.mul_(1 - rate * decay);
    torch::Tensor& mean = state_[1 + 2 * i].second;
    torch::Tensor& square = state_[2 + 2 * i].second;
    mean.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    const torch::Tensor scale = square.sqrt().div_(std::sqrt(square_part)).add_(options_.epsilon);
    parameter.addcdiv_(mean, scale, -rate / mean_part);
  }
}

void AdamW::restart() {
  for (auto& [name, tensor] : state_) tensor.zero_();
}

}  // namespace onetap
