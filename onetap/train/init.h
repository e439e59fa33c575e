// Weights that a run starts from: those of another run, or of a safetensors file.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/nn/graph_module.h"
#include "onetap/recipe/recipe.h"

#include <functional>
#include <string>
#include <vector>

namespace onetap {

using InitNotice = std::function<void(const std::string&)>;

// Copies what `recipe.init` names into the module, but for tensors that a glob of `init_skip` names, and tells the
// layers: those that get weights of dense ones begin as these at the recipe's first temperature. Of a run it is the
// last checkpoint (averaged weights, if the run has `ema`). `notice` hears what was left out. kData if the weights do
// not fit, kUsage if a glob matches nothing. Without `init`, nothing happens. Returns the plain_norms() of what was
// copied: layers that scale their weights then scale the statistics behind them too.
std::vector<std::string> import_init(const Recipe& recipe, nn::GraphModule module, const InitNotice& notice);

// The same on a module of its own, before a run is made. kUsage also where a method needs trained weights to start from
// and the recipe has none, or where an op has no int8 form and the recipe wants one.
void check_init(const Recipe& recipe, const Graph& graph);

}  // namespace onetap
