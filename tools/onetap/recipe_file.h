// A recipe as verbs take it: a file, or one that is installed with the command.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>

namespace onetap::tool {

// Accepts a file, and 'demo.toml' and 'recipes/demo.toml' where that recipe is installed. An error names both.
CLI::Validator recipe_file();

// The file that was meant: `given`, or the installed recipe of its name, which a note on stderr tells.
std::filesystem::path recipe_place(const std::string& given);

}  // namespace onetap::tool
