// What --help prints.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace onetap::tool {

// The help text of a verb, filled into lines of COLUMNS characters, else as wide as the terminal, else of 100. Commands
// of its examples keep their lines.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string path, CLI::AppFormatMode mode) const override;
};

// "-o", "--out"; "--flip", "--no-flip". Of an argument nothing.
std::vector<std::string> flag_names(const CLI::Option& option);

// What follows them: "N [1]", "safetensors|onnx|c REQUIRED". Of a flag without a value nothing.
std::string value_text(const CLI::Option& option);

}  // namespace onetap::tool
