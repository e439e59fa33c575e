// Parameters that a run leaves as they are.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/recipe/recipe.h"

namespace onetap {

// Parameters that `freeze_layers` of the recipe names are not trained from now on. A batch norm without a parameter to
// train keeps its statistics, too, and normalises by them. kUsage if a glob matches nothing, or if nothing is left.
void freeze_layers(const Recipe& recipe, nn::GraphModule& module);

// The same on a module of its own, before a run is made.
void check_frozen_layers(const Recipe& recipe, const Graph& graph);

}  // namespace onetap
