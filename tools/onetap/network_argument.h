// A network as verbs take it: an architecture with its flags, or a network text file.
#pragma once

#include "onetap/graph/graph.h"
#include "tools/onetap/recipe_flags.h"

#include <string>

namespace onetap::tool {

struct NetworkArgument {
  std::string name;
  RecipeFlags flags;
  int64_t classes = 0;

  // Adds the positional argument and the flags that shape a network; `--layers`, which layers get the method, only
  // where the verb has no other use for the word.
  void add(CLI::App& verb, const std::string& help, bool with_layers = true);
  Graph build() const;
  // Any flag typed that only a zoo network or a text file understands.
  bool has_flags() const { return !flags.given().empty() || classes != 0; }
};

}  // namespace onetap::tool
