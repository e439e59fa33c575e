#include "onetap/base/json.h"

#include <nlohmann/json.hpp>

#include <limits>

namespace onetap {
namespace {

class Unexpected : public nlohmann::json::exception {
 public:
  explicit Unexpected(const std::string& what) : exception(302, what.c_str()) {}  // 302: not the expected type
};

// A value in a message: what it is if it is long.
std::string value_text(const nlohmann::json& value) {
  constexpr size_t kMostText = 40;
  if (value.is_discarded()) return "text that is not JSON";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  const std::string text = json_text(value);
  return text.size() <= kMostText ? text : std::string("a long ") + value.type_name();
}

[[noreturn]] void expected_for(const char* key, const std::string& what, const nlohmann::json& value) {
  throw Unexpected("expected " + what + " for '" + key + "', got " + value_text(value));
}

int64_t to_whole(const nlohmann::json& value, const char* key, int64_t minimum) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const bool whole = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > kMost);
  if (!whole || value.get<int64_t>() < minimum) {
    expected_for(key, "a whole number of at least " + std::to_string(minimum), value);
  }
  return value.get<int64_t>();
}

double to_number(const nlohmann::json& value, const char* key) {
  if (!value.is_number()) expected_for(key, "a number", value);
  return value.get<double>();
}

std::string to_string(const nlohmann::json& value, const char* key) {
  if (!value.is_string()) expected_for(key, "a text", value);
  return value.get<std::string>();
}

template <typename Convert>
auto each(const nlohmann::json& list, const Convert& convert) {
  std::vector<decltype(convert(list))> items;
  items.reserve(list.size());
  for (const nlohmann::json& item : list) items.push_back(convert(item));
  return items;
}

// Looks at brackets and commas alone: exact for JSON, and of no matter for a text that is none.
bool is_within(std::string_view text, const JsonLimits& limits) {
  size_t depth = 0, values = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // the character after it does not end the string
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limits.depth) return false;
      ++values;
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (c == ',') {
      ++values;
    }
  }
  return values <= limits.values;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const JsonLimits& limits) {
  if (!is_within(text, limits)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

const nlohmann::json& json_member(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) throw Unexpected("expected a JSON object, got " + value_text(object));
  const auto found = object.find(key);
  if (found == object.end()) throw Unexpected("expected the key '" + std::string(key) + "', got none");
  return *found;
}

double json_number(const nlohmann::json& object, const char* key) {
  return to_number(json_member(object, key), key);
}

std::optional<double> json_number_or_null(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = json_member(object, key);
  return value.is_null() ? std::nullopt : std::optional<double>(to_number(value, key));
}

std::vector<double> json_numbers(const nlohmann::json& object, const char* key) {
  return each(json_list(object, key), [&](const nlohmann::json& item) { return to_number(item, key); });
}

bool json_bool(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = json_member(object, key);
  if (!value.is_boolean()) expected_for(key, "true or false", value);
  return value.get<bool>();
}

std::string json_string(const nlohmann::json& object, const char* key) {
  return to_string(json_member(object, key), key);
}

std::vector<std::string> json_strings(const nlohmann::json& object, const char* key) {
  return each(json_list(object, key), [&](const nlohmann::json& item) { return to_string(item, key); });
}

const nlohmann::json& json_list(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = json_member(object, key);
  if (!value.is_array()) expected_for(key, "a list", value);
  return value;
}

const nlohmann::json& json_object(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = json_member(object, key);
  if (!value.is_object()) expected_for(key, "an object", value);
  return value;
}

int64_t whole_number(const nlohmann::json& object, const char* key, int64_t minimum) {
  return to_whole(json_member(object, key), key, minimum);
}

std::vector<int64_t> whole_numbers(const nlohmann::json& object, const char* key) {
  return each(json_list(object, key), [&](const nlohmann::json& item) { return to_whole(item, key, 0); });
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace onetap
