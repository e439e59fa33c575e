#include "onetap/base/json.h"

#include <nlohmann/json.hpp>

#include <limits>

namespace onetap {
namespace {

class NotWhole : public nlohmann::json::exception {
 public:
  explicit NotWhole(const std::string& what) : exception(302, what.c_str()) {}  // 302: the type is not the expected one
};

int64_t to_whole(const nlohmann::json& value, const char* key, int64_t minimum) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const bool whole = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > kMost);
  if (!whole || value.get<int64_t>() < minimum) {
    throw NotWhole("expected a whole number of at least " + std::to_string(minimum) + " for '" + key + "', got " +
                   json_text(value));
  }
  return value.get<int64_t>();
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

int64_t whole_number(const nlohmann::json& object, const char* key, int64_t minimum) {
  return to_whole(object.at(key), key, minimum);
}

std::vector<int64_t> whole_numbers(const nlohmann::json& object, const char* key) {
  const nlohmann::json& list = object.at(key);
  if (!list.is_array()) throw NotWhole("expected a list for '" + std::string(key) + "', got " + json_text(list));
  std::vector<int64_t> numbers;
  numbers.reserve(list.size());
  for (const nlohmann::json& item : list) numbers.push_back(to_whole(item, key, 0));
  return numbers;
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace onetap
