// Flags for recipe fields, made from the table of fields.
#pragma once

#include "onetap/recipe/recipe.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string>
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

}  // namespace onetap::tool
