// Parsing and printing JSON, compiled once: each source that did it by itself would take seconds longer.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// What a text may ask of its reader. A tree of values takes up to 100 bytes for each, so that ten megabytes of brackets
// would take most of a gigabyte; these limits are far beyond every file of ours.
struct JsonLimits {
  size_t depth = 64;                // lists and objects inside each other
  size_t values = size_t{1} << 21;  // all of them together, lists and objects included
};

// A discarded value (is_discarded()) if the text is not JSON or is beyond the limits, which are checked before a tree
// is built.
nlohmann::json parse_json(std::string_view text, const JsonLimits& limits = {});

// The member `key` of an object, which must be a whole number (or a list of them) of at least `minimum`. Throws a
// nlohmann::json::exception, as object.at(key) does, if it is another thing or is missing. nlohmann's own conversion
// takes 1e62 for an integer, which is undefined.
int64_t whole_number(const nlohmann::json& object, const char* key, int64_t minimum = 0);
std::vector<int64_t> whole_numbers(const nlohmann::json& object, const char* key);

// On one line, or indented by `indent` blanks. What is not UTF-8 (a path, a folder's name) becomes U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace onetap
