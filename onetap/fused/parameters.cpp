#include "onetap/fused/parameters.h"

#include "onetap/base/fail.h"

namespace onetap::fused {

std::unordered_map<std::string, nn::ParameterRule> rules_by_name(const nn::GraphModule& module,
                                                                 const std::vector<nn::ParameterRule>& rules) {
  const auto parameters = module->named_parameters();
  if (!rules.empty() && rules.size() != parameters.size()) {
    fail("[fused] expected rules of {} parameters, got {}", parameters.size(), rules.size());
  }
  std::unordered_map<std::string, nn::ParameterRule> named;
  for (size_t i = 0; i < parameters.size(); ++i) {
    named[parameters[i].key()] = rules.empty() ? nn::ParameterRule() : rules[i];
  }
  return named;
}

void update_parameters(Ops& ops, std::vector<PlainState>& states, const StepValues& values,
                       const UpdateOptions& options) {
  if (states.empty()) return;
  for (PlainState& state : states) {
    if (state.rule.unit_rows) state.grad = nn::unit_rows(state.grad);
  }
  ops.update_plain(states, values, options);
}

}  // namespace onetap::fused
