// Parsing and printing JSON, compiled once: each source that did it by itself would take seconds longer.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace onetap {

// A discarded value (is_discarded()) if the text is not JSON.
nlohmann::json parse_json(std::string_view text);

// On one line, or indented by `indent` blanks. What is not UTF-8 (a path, a folder's name) becomes U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace onetap
