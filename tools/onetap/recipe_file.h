// A recipe as verbs take it: a file, or one that is installed with the command.
#pragma once

#include <CLI/CLI.hpp>

namespace onetap::tool {

// Replaces 'demo.toml' and 'recipes/demo.toml' by the installed recipe where there is no such file. An error names
// both.
CLI::Validator recipe_file();

}  // namespace onetap::tool
