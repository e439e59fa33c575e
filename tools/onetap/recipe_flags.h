// Flags for recipe fields, made from the table of fields.
#pragma once

#include "onetap/recipe/recipe.h"

#include <CLI/CLI.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace onetap::tool {

class RecipeFlags {
 public:
  // Adds flags for these fields, or for all of them.
  void add(CLI::App& app, const std::vector<std::string>& keys = {});

  // What was typed, over `recipe`.
  void apply(Recipe& recipe) const;

  // Keys that were typed.
  const std::map<std::string, std::string>& given() const { return given_; }

 private:
  std::map<std::string, std::string> given_;
};

// The recipe a user asks for, and which keys they named themselves.
struct RecipeRequest {
  Recipe recipe;
  std::set<std::string> keys;
};

// The recipe at recipe_place(path) (none if `path` is empty), and the flags over it. Where --epochs leaves less than
// the recipe's warm-up, that is shortened, with a note.
RecipeRequest read_recipe_request(const std::string& path, const RecipeFlags& flags);

// What was started keeps its recipe: what does not alter the computation may change, the rest must agree. kUsage calls
// it a `kind` ("run") in `directory`.
Recipe merge_for_resume(Recipe started, const RecipeRequest& request, std::string_view kind,
                        const std::string& directory);

}  // namespace onetap::tool
