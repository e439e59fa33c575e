// Small networks for the tests of this room.
#pragma once

#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/recipe/recipe.h"
#include "tests/support/support.h"

#include <optional>

namespace onetap::testing {

inline Graph small_network(const std::string& arch, int64_t width, std::optional<Method> method, int64_t image = 8) {
  Recipe recipe;
  recipe.arch = arch;
  recipe.width = width;
  recipe.method = "conv";
  Graph graph = recipe_network(recipe, 5, image);
  if (method) apply_method(graph, *method, "");
  return graph;
}

}  // namespace onetap::testing
