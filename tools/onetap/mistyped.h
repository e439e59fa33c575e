// Words of a command line that no flag and no verb has.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

// What to say of the first unknown verb or flag among `words` (without the program's name), with the nearest known one.
// Nothing if all are known. A parser that takes the value of an unknown flag for an argument complains of that alone.
std::optional<std::string> mistyped_word(const CLI::App& app, const std::vector<std::string>& words);

// What CLI11 says of words that are all known, as our own errors put it: what was expected and what was given, with the
// nearest word where an option takes some words only.
std::string usage_text(const CLI::App& verb, const CLI::ParseError& problem);

}  // namespace onetap::tool
