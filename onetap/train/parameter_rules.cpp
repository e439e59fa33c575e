#include "onetap/train/parameter_rules.h"

#include "onetap/graph/tap_layout.h"

namespace onetap {

nn::ParameterRules parameter_rules(const Graph& graph, const Recipe& recipe) {
  nn::ParameterRules rules;
  const nn::ParameterRule no_decay{1, 0, false};
  for (const Node& node : graph.nodes()) {
    const std::string weight = node.name + ".weight", bias = node.name + ".bias";
    if (node.op == Op::kActiveShift) rules[weight] = {recipe.shift_lr, 0, /*unit_rows=*/true};
    if (node.method.name() == "sal" && recipe.logit_decay != 1) {
      rules[node.name + ".attention"] = {1, recipe.logit_decay, false};
      if (tap_layout(graph, node).may_be_empty) rules[node.name + ".keep"] = {1, recipe.logit_decay, false};
    }
    if (recipe.decay_norms) continue;
    if (node.op == Op::kBatchNorm) rules[weight] = rules[bias] = no_decay;
    if (node.bias) rules[bias] = no_decay;
  }
  return rules;
}

}  // namespace onetap
