// Words that shells offer as the value of an option.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace onetap::tool {

// A validator that checks nothing, for options whose own check does more than compare words, or comes later.
CLI::Validator offered(const std::vector<std::string>& words);

// The words of offered(), CLI::IsMember or CLI::Transformer; empty for a free value.
std::vector<std::string> offered_words(const CLI::Option& option);

std::vector<std::string> architecture_words();
std::vector<std::string> checkpoint_words();
std::vector<std::string> data_words();
std::vector<std::string> device_words();

}  // namespace onetap::tool
