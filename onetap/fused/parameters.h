// The parameters that no kernel for convolutions updates, each by its own rule.
#pragma once

#include "onetap/fused/ops.h"
#include "onetap/nn/graph_module.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace onetap::fused {

// `rules` are of the module's parameters, in order; empty: the usual one for all.
std::unordered_map<std::string, nn::ParameterRule> rules_by_name(const nn::GraphModule& module,
                                                                 const std::vector<nn::ParameterRule>& rules);

// One step of SGD by the gradients of the whole step.
void update_parameters(Ops& ops, std::vector<PlainState>& states, const StepValues& values,
                       const UpdateOptions& options);

}  // namespace onetap::fused
