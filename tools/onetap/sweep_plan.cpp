#include "tools/onetap/sweep_plan.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/sha256.h"
#include "onetap/base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

constexpr int kFormat = 1;
constexpr size_t kMostRuns = 100'000;
constexpr size_t kLongestName = 200;  // file systems stop at 255, and ".log" comes after it

fs::path grid_path(const fs::path& directory) {
  return directory / "sweep.json";
}

// In the form that parse_grid() reads.
std::string axis_text(const GridAxis& axis) {
  const auto has_comma = [](const std::string& value) { return value.find(',') != std::string::npos; };
  const bool commas = std::any_of(axis.values.begin(), axis.values.end(), has_comma);
  return fmt::format("{}={}{}", axis.field->key, join(axis.values, commas ? ";" : ","), commas ? ";" : "");
}

GridAxis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) fail_usage("[sweep] expected --grid KEY=VALUE,VALUE..., got '{}'", text);
  std::string key = text.substr(0, equals);
  std::replace(key.begin(), key.end(), '-', '_');
  GridAxis axis;
  axis.field = &known_recipe_field(key, fmt::format("{} (--grid {})", key, text));

  const std::string_view list = std::string_view(text).substr(equals + 1);
  const bool semicolons = list.find(';') != std::string_view::npos;
  std::vector<std::string_view> values = split(list, semicolons ? ';' : ',');
  if (semicolons && values.back().empty()) values.pop_back();
  for (const std::string_view value : values) {
    if (value.empty()) fail_usage("[sweep] expected a value between separators, got --grid {}", text);
    Recipe scratch;
    set_recipe_field(scratch, *axis.field, value, fmt::format("{} (--grid {})", key, text));
    // 0.10 and 0.1 are one value, and give one name.
    axis.values.push_back(recipe_field_text(scratch, *axis.field));
    if (std::count(axis.values.begin(), axis.values.end(), axis.values.back()) > 1) {
      fail_usage("[sweep] expected different values, got {} twice in --grid {}", value, text);
    }
  }
  return axis;
}

const GridAxis* find_axis(const Grid& grid, const RecipeField* field) {
  const auto found = std::find_if(grid.begin(), grid.end(), [&](const GridAxis& axis) { return axis.field == field; });
  return found == grid.end() ? nullptr : &*found;
}

std::string keys_text(const Grid& grid) {
  std::vector<std::string> keys;
  for (const GridAxis& axis : grid) keys.emplace_back(axis.field->key);
  return join(keys, ", ");
}

}  // namespace

// Distinct values stay distinct: what is not safe in a file name becomes %2F.
std::string safe_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("=,.-+_").find(c) != std::string::npos) {
      name += c;
    } else {
      name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  if (name.size() <= kLongestName) return name;
  Sha256 hash;
  hash.update(text.data(), text.size());
  const std::string mark = "-" + hash.hex().substr(0, 12);
  return name.substr(0, kLongestName - mark.size()) + mark;
}

Grid parse_grid(const std::vector<std::string>& texts) {
  Grid grid;
  size_t runs = 1;
  for (const std::string& text : texts) {
    GridAxis axis = parse_axis(text);
    if (find_axis(grid, axis.field) != nullptr) {
      fail_usage("[sweep] expected each key once, got --grid {} again", axis.field->key);
    }
    runs *= axis.values.size();
    if (runs > kMostRuns) fail_usage("[sweep] expected at most {} runs, got {} or more", kMostRuns, runs);
    grid.push_back(std::move(axis));
  }
  return grid;
}

Grid extend_grid(const Grid& planned, const Grid& asked, const fs::path& directory) {
  Grid extended = planned;
  for (GridAxis& axis : extended) {
    const GridAxis* now = find_axis(asked, axis.field);
    // Other keys would make other names.
    if (now == nullptr || asked.size() != planned.size()) {
      fail_usage("[sweep] {} was started with a grid over {}, got {}: choose another --out", directory.string(),
                 keys_text(planned), keys_text(asked));
    }
    const std::vector<std::string> before = axis.values;
    for (const std::string& value : before) {
      if (std::find(now->values.begin(), now->values.end(), value) != now->values.end()) continue;
      fail_usage("[sweep] {} was started with --grid {}, got {}: values may be added, not left out", directory.string(),
                 axis_text(axis), axis_text(*now));
    }
    for (const std::string& value : now->values) {
      if (std::find(before.begin(), before.end(), value) == before.end()) axis.values.push_back(value);
    }
  }
  return extended;
}

std::vector<SweepRun> grid_runs(const Grid& grid) {
  std::vector<SweepRun> runs = {{}};
  for (const GridAxis& axis : grid) {
    std::vector<SweepRun> longer;
    for (const SweepRun& run : runs) {
      for (const std::string& value : axis.values) {
        SweepRun next = run;
        next.name += fmt::format("{}{}={}", run.name.empty() ? "" : ",", axis.field->key, value);
        next.values.push_back(value);
        longer.push_back(std::move(next));
      }
    }
    runs = std::move(longer);
  }
  for (SweepRun& run : runs) run.name = safe_name(run.name);
  return runs;
}

Recipe run_recipe(Recipe base, const Grid& grid, const SweepRun& run) {
  for (size_t i = 0; i < grid.size(); ++i) set_recipe_field(base, *grid[i].field, run.values[i], grid[i].field->key);
  return base;
}

fs::path planned_recipe_path(const fs::path& directory) {
  return directory / "recipe.toml";
}

std::optional<SweepPlan> read_plan(const fs::path& directory) {
  const fs::path path = grid_path(directory);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const nlohmann::json object = parse_json(read_file(path, 1u << 20));
  try {
    if (whole_number(object, "format") != kFormat)
      fail_data("[sweep] written by another version of onetap ({})", path.string());
    return SweepPlan{read_recipe(planned_recipe_path(directory)), parse_grid(json_strings(object, "grid"))};
  } catch (const nlohmann::json::exception& problem) {
    fail_data("[sweep] not the plan of a sweep: {} ({})", problem.what(), path.string());
  }
}

void write_plan(const fs::path& directory, const SweepPlan& plan) {
  nlohmann::ordered_json object;
  object["format"] = kFormat;
  for (const GridAxis& axis : plan.grid) object["grid"].push_back(axis_text(axis));
  write_file_atomic(planned_recipe_path(directory), recipe_text(plan.recipe));
  // Last: a directory without it is no sweep yet.
  write_file_atomic(grid_path(directory), json_text(object, 2) + '\n');
}

}  // namespace onetap::tool
