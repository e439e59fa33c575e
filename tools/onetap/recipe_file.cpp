#include "tools/onetap/recipe_file.h"

#include "onetap/base/text.h"
#include "tools/onetap/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

// Relative to the program, as an installation may be moved. Empty where the system does not say where that is.
fs::path installed_recipe(const fs::path& given) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (program.empty()) return {};
  return (program.parent_path() / ONETAP_RECIPES_FROM_PROGRAM / given.filename()).lexically_normal();
}

// Names of the folder in the sources, and names alone: what documentation and examples say.
bool may_be_installed(const fs::path& given) {
  return given == given.filename() || given == fs::path("recipes") / given.filename();
}

// The recipe of a folder that has the nearest name, with or without ".toml", as it would have to be given.
std::string recipe_hint(const fs::path& given, const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".toml" || !entry.is_regular_file(ignored)) continue;
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  const auto near = nearest(given.stem().string(), names);
  return near ? fmt::format(", did you mean '{}'?", (given.parent_path() / (*near + ".toml")).string()) : "";
}

fs::path folder_of(const fs::path& given) {
  return given.has_parent_path() ? given.parent_path() : fs::path(".");
}

bool is_given(const fs::path& given) {
  std::error_code ignored;
  return fs::exists(given, ignored) && !fs::is_directory(given, ignored);
}

std::string check_recipe_file(const std::string& given) {
  if (is_given(given)) return "";
  const fs::path installed = may_be_installed(given) ? installed_recipe(given) : fs::path();
  if (installed.empty()) {
    return fmt::format("expected a recipe, got {}: there is no such file{}", given,
                       recipe_hint(given, folder_of(given)));
  }
  std::error_code ignored;
  if (!fs::is_regular_file(installed, ignored)) {
    const std::string here = recipe_hint(given, folder_of(given));
    return fmt::format("expected a recipe, got {}: neither it nor {} is a file{}", given, installed.string(),
                       here.empty() ? recipe_hint(given, installed.parent_path()) : here);
  }
  return "";
}

}  // namespace

CLI::Validator recipe_file() {
  return CLI::Validator([](std::string& given) { return check_recipe_file(given); }, "FILE");
}

fs::path recipe_place(const std::string& given) {
  if (is_given(given) || !may_be_installed(given)) return given;
  const fs::path installed = installed_recipe(given);
  console().note(fmt::format("using {}", installed.string()));
  return installed;
}

}  // namespace onetap::tool
