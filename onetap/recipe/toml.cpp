#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/recipe/recipe.h"
#include "onetap/recipe/toml_limits.h"

// The parser asserts what "[[[[" does not keep; without the assertion it reports an error, as it should.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

namespace onetap {
namespace {

constexpr uint64_t kMaxBytes = 1u << 20;
constexpr const char* kProvenance = "provenance";

// The parser is given ASCII alone: on other characters outside of strings its tables of Unicode are not defined. Bytes
// beyond ASCII travel as %C3, and a percent sign as %25.
std::string to_ascii(std::string_view text) {
  std::string ascii;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || c == '%') {
      ascii += fmt::format("%{:02X}", byte);
    } else {
      ascii += c;
    }
  }
  return ascii;
}

std::string from_ascii(std::string_view ascii) {
  const auto digit = [&](size_t at) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    return at < ascii.size() ? kDigits.find(ascii[at]) : std::string_view::npos;
  };
  std::string text;
  for (size_t i = 0; i < ascii.size(); ++i) {
    const size_t high = digit(i + 1), low = digit(i + 2);
    if (ascii[i] == '%' && high != std::string_view::npos && low != std::string_view::npos) {
      text += static_cast<char>(static_cast<unsigned char>(16 * high + low));
      i += 2;
    } else {
      text += ascii[i];
    }
  }
  return text;
}

// The scalar as set_recipe_field reads it; kUsage for tables, arrays and dates.
std::string scalar_text(const toml::node& node, std::string_view where) {
  if (const auto* text = node.as_string()) return from_ascii(text->get());
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  fail_usage("[recipe] expected a single value for {}", where);
}

void check_type(const RecipeField& field, const toml::node& node, std::string_view where) {
  if (field.method_key != nullptr && field.method_key->is_share()) return;  // a number or a text: its reader knows
  const bool wants_text = field.is_text();
  if (wants_text != node.is_string()) {
    fail_usage("[recipe] expected {} for {}, got {}", wants_text ? "a \"text\" in quotes" : "a value without quotes",
               where, scalar_text(node, where));
  }
}

}  // namespace

std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\u{:04X}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

namespace {

toml::table parse_table(std::string_view text, std::string_view label) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  check_key_depth(text, label);
  try {
    return toml::parse(to_ascii(text));
  } catch (const toml::parse_error& error) {
    fail_usage("[recipe] {}:{}: {}", label, error.source().begin.line, from_ascii(error.description()));
  }
}

}  // namespace

std::map<std::string, std::string> recipe_provenance(std::string_view text) {
  std::map<std::string, std::string> words;
  try {
    const toml::table table = parse_table(text, "provenance");
    const toml::table* facts = table[kProvenance].as_table();
    if (facts == nullptr) return words;
    for (const auto& [key, node] : *facts) {
      if (const auto* word = node.as_string()) words[from_ascii(key.str())] = from_ascii(word->get());
    }
  } catch (const Error&) {
    words.clear();
  }
  return words;
}

std::vector<std::string> apply_recipe_text(Recipe& recipe, std::string_view text, std::string_view label) {
  const toml::table table = parse_table(text, label);
  std::vector<std::string> set_keys;
  for (const auto& [key, node] : table) {
    const std::string name = from_ascii(key.str());
    if (name == kProvenance) continue;
    const std::string where = fmt::format("{} ({}:{})", name, label, node.source().begin.line);
    const RecipeField& field = known_recipe_field(name, where);
    check_type(field, node, where);
    set_recipe_field(recipe, field, scalar_text(node, where), where);
    set_keys.emplace_back(name);
  }
  return set_keys;
}

Recipe read_recipe(const std::filesystem::path& path) {
  Recipe recipe;
  apply_recipe_text(recipe, read_file(path, kMaxBytes), path.string());
  return recipe;
}

std::string recipe_text(const Recipe& recipe) {
  std::string text;
  const char* group = "";
  for (const RecipeField& field : recipe_fields()) {
    const std::string value = recipe_field_text(recipe, field);
    if (value.empty() && (!field.is_text() || field.is_per_colour())) continue;
    if (std::string_view(group) != field.group) {
      group = field.group;
      text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", group);
    }
    text += fmt::format("{} = {}\n", field.key, field.is_quoted(value) ? toml_string(value) : value);
  }
  return text;
}

}  // namespace onetap
