// The range of a flag's number. CLI::Range lets nan pass: it is neither below nor above.
#pragma once

#include "onetap/base/text.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <string>

namespace onetap::tool {

inline CLI::Validator number_from(double low, double high) {
  const std::string range = fmt::format("{} to {}", low, high);
  return CLI::Validator(
      [low, high, range](std::string& text) {
        const auto value = parse_double(text);
        return value && *value >= low && *value <= high ? "" : "expected a number from " + range + ", got " + text;
      },
      "");
}

}  // namespace onetap::tool
