#include "onetap/train/frozen_layers.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/method.h"

#include <set>

namespace onetap {

void freeze_layers(const Recipe& recipe, nn::GraphModule& module) {
  if (trim(recipe.freeze_layers).empty()) return;
  std::vector<std::string> all;
  const auto parameters = module->named_parameters();
  for (const auto& item : parameters) all.push_back(item.key());
  const auto chosen =
      select_names(all, all, recipe.freeze_layers, fmt::format("parameter of {}", module->graph().name()));
  if (chosen.size() == all.size()) {
    fail_usage("[train] expected a parameter that is left to train, got --freeze-layers '{}'", recipe.freeze_layers);
  }
  for (const std::string& name : chosen) torch::Tensor(parameters[name]).requires_grad_(false);
  std::set<std::string> norms;
  for (const Node& node : module->graph().nodes()) {
    const auto is_frozen = [&](const char* tensor) { return !parameters[node.name + tensor].requires_grad(); };
    if (node.op == Op::kBatchNorm && is_frozen(".weight") && is_frozen(".bias")) norms.insert(node.name);
  }
  module->fix_norms(std::move(norms));
}

void check_frozen_layers(const Recipe& recipe, const Graph& graph) {
  if (trim(recipe.freeze_layers).empty()) return;
  nn::GraphModule module(graph);
  freeze_layers(recipe, module);
}

}  // namespace onetap
