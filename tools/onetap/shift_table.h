// Fixed shifts as a run has learned them (train --shift-table from:RUN).
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/recipe/recipe.h"

namespace onetap::tool {

// Gives the shifts of a new run's network the proportions of the taps that the run or .tap file kept which the recipe
// names, if it names one. kData if that has no taps.
void apply_shift_table(const Recipe& recipe, Graph& graph);

}  // namespace onetap::tool
