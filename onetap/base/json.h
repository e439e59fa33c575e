// Parsing and printing JSON, compiled once: each source that did it by itself would take seconds longer.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
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

// Members of an object by their key. Each throws a nlohmann::json::exception that says "expected ..., got ..." and
// names the key, where the library's own accessors speak of its calls and types, if the value is no object, the key is
// missing or the member is another thing.
const nlohmann::json& json_member(const nlohmann::json& object, const char* key);
double json_number(const nlohmann::json& object, const char* key);
std::optional<double> json_number_or_null(const nlohmann::json& object, const char* key);
std::vector<double> json_numbers(const nlohmann::json& object, const char* key);
bool json_bool(const nlohmann::json& object, const char* key);
std::string json_string(const nlohmann::json& object, const char* key);
std::vector<std::string> json_strings(const nlohmann::json& object, const char* key);
const nlohmann::json& json_list(const nlohmann::json& object, const char* key);
const nlohmann::json& json_object(const nlohmann::json& object, const char* key);

// Likewise whole numbers of at least `minimum`, and lists of them. nlohmann's own conversion takes 1e62 for an integer,
// which is undefined.
int64_t whole_number(const nlohmann::json& object, const char* key, int64_t minimum = 0);
std::vector<int64_t> whole_numbers(const nlohmann::json& object, const char* key);

// On one line, or indented by `indent` blanks. What is not UTF-8 (a path, a folder's name) becomes U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace onetap
