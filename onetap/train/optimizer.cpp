#include "onetap/train/optimizer.h"

#include "onetap/base/fail.h"

namespace onetap {

Optimizer::Optimizer(const torch::nn::Module& module, const nn::ParameterRules& rules) {
  size_t used = 0;
  for (const auto& item : module.named_parameters()) {
    parameters_.emplace_back(item.key(), item.value());
    const auto own = rules.find(item.key());
    rules_.push_back(own == rules.end() ? nn::ParameterRule{} : own->second);
    if (own != rules.end()) ++used;
  }
  if (used != rules.size()) fail("[train] expected rules for parameters alone, got {} for others", rules.size() - used);
}

void Optimizer::zero_grad() {
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad() = torch::Tensor();
}

void Optimizer::forget(const std::vector<std::string>& parameters) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state()) {
    for (const std::string& parameter : parameters) {
      if (name == parameter || name.compare(0, parameter.size() + 1, parameter + ".") == 0) {
        torch::Tensor(tensor).zero_();
      }
    }
  }
}

}  // namespace onetap
