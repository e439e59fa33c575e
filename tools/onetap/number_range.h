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

// A fraction: above 0, at most 1.
inline CLI::Validator positive_fraction() {
  return CLI::Validator(
      [](std::string& text) {
        const auto value = parse_double(text);
        return value && *value > 0 && *value <= 1 ? "" : "expected a number above 0 and at most 1, got " + text;
      },
      "");
}

}  // namespace onetap::tool
