// What a sweep varies, the runs that come of it, and the files that pin both.
#pragma once

#include "onetap/recipe/recipe.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

struct GridAxis {
  const RecipeField* field = nullptr;
  std::vector<std::string> values;  // each as recipe_field_text() prints it
};
using Grid = std::vector<GridAxis>;

// From "t1=0.02,0.1" and the like; semicolons separate values that hold commas. kUsage for what no recipe takes.
Grid parse_grid(const std::vector<std::string>& texts);

// A name for a folder or file: what other characters a text has is spelled out, and what is too long for a file system
// is cut and marked.
std::string safe_name(const std::string& text);

// What an earlier call planned and what this one asks for; kUsage unless it asks for all of that, and perhaps more.
Grid extend_grid(const Grid& planned, const Grid& asked, const std::filesystem::path& directory);

// One combination.
struct SweepRun {
  std::string name;                 // of its directory: "seed=0,t1=0.02"
  std::vector<std::string> values;  // one per axis
};

// All combinations; the last axis changes fastest.
std::vector<SweepRun> grid_runs(const Grid& grid);

// The recipe of one of them.
Recipe run_recipe(Recipe base, const Grid& grid, const SweepRun& run);

struct SweepPlan {
  Recipe recipe;  // what is not varied
  Grid grid;
};

// DIR/recipe.toml, which every run of the sweep is given, and DIR/sweep.json.
std::filesystem::path planned_recipe_path(const std::filesystem::path& directory);
std::optional<SweepPlan> read_plan(const std::filesystem::path& directory);
void write_plan(const std::filesystem::path& directory, const SweepPlan& plan);

}  // namespace onetap::tool
