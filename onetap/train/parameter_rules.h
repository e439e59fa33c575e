// Which parameters of a network a recipe trains in another way than the rest.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/nn/parameter_rule.h"
#include "onetap/recipe/recipe.h"

namespace onetap {

// Active shifts have unit gradients, a learning rate of their own (shift_lr) and no weight decay; without decay_norms,
// batch norms and biases have none either; attention logits have logit_decay.
nn::ParameterRules parameter_rules(const Graph& graph, const Recipe& recipe);

}  // namespace onetap
