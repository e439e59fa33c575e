// What `--init RUN` brings beside weights: the run's network and data, where nobody names others.
#pragma once

#include "tools/onetap/recipe_flags.h"

#include <string>

namespace onetap::tool {

// If `init` is a run and nobody named an architecture: its network, method and data into the recipe, but for keys that
// the user named. Another method than the run's has keys and layers of its own; other data have their own limits.
// Returns what was taken in one line, "" for nothing. kData if the directory is no run.
std::string take_from_init_run(RecipeRequest& request);

// Mean and sd of the pixels, as far as the recipe has none and its data have others: those of the run that is `init`,
// or those in the metadata of the file that is. The network then starts with the function that it had. Returns what was
// taken in one line, "" for nothing. kData naming the file if its metadata are damaged.
std::string take_pixels_of_init(Recipe& recipe);

}  // namespace onetap::tool
