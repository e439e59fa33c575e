// Numbers that may be unknown, for programs: null in JSON, an empty cell in CSV.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace onetap::tool {

inline nlohmann::ordered_json json_number(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

inline std::string csv_number(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace onetap::tool
