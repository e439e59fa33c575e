#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/recipe/recipe.h"

// The parser asserts what "[[[[" does not keep; without the assertion it reports an error, as it should.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

namespace onetap {
namespace {

constexpr uint64_t kMaxBytes = 1u << 20;
constexpr const char* kProvenance = "provenance";

// The scalar as set_recipe_field reads it; kUsage for tables, arrays and dates.
std::string scalar_text(const toml::node& node, std::string_view where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  fail_usage("[recipe] expected a single value for {}", where);
}

void check_type(const RecipeField& field, const toml::node& node, std::string_view where) {
  const bool wants_text = std::holds_alternative<std::string Recipe::*>(field.member);
  if (wants_text != node.is_string()) {
    fail_usage("[recipe] expected {} for {}, got {}", wants_text ? "a \"text\" in quotes" : "a value without quotes",
               where, scalar_text(node, where));
  }
}

// Recipes are plain ASCII but for strings and comments. Checked before the parser sees the text: on other characters
// outside of strings its tables of Unicode are not defined.
void check_characters(std::string_view text, std::string_view label) {
  char inside = 0;  // the quote of the string, or '#', that the character is part of
  size_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      inside = 0;
      ++line;
    } else if (inside == '"' && c == '\\' && text.substr(i + 1, 1) != "\n") {
      ++i;
    } else if (inside == c && c != '#') {
      inside = 0;
    } else if (inside == 0 && (c == '"' || c == '\'' || c == '#')) {
      const bool is_triple = c != '#' && text.substr(i, 3) == std::string(3, c);
      if (is_triple) fail_usage("[recipe] {}:{}: expected a string on one line, got three quotes", label, line);
      inside = c;
    } else if (inside == 0 && static_cast<unsigned char>(c) >= 0x80) {
      fail_usage("[recipe] {}:{}: expected ASCII outside of strings and comments", label, line);
    }
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

std::vector<std::string> apply_recipe_text(Recipe& recipe, std::string_view text, std::string_view label) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  check_characters(text, label);
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail_usage("[recipe] {}:{}: {}", label, error.source().begin.line, error.description());
  }
  std::vector<std::string> set_keys;
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    if (name == kProvenance) continue;
    const std::string where = fmt::format("{} ({}:{})", name, label, node.source().begin.line);
    const RecipeField* field = find_recipe_field(name);
    if (field == nullptr) {
      std::vector<std::string> keys;
      for (const RecipeField& candidate : recipe_fields()) keys.emplace_back(candidate.key);
      fail_usage("[recipe] unknown key {}{}", where, did_you_mean(name, keys));
    }
    check_type(*field, node, where);
    set_recipe_field(recipe, *field, scalar_text(node, where), where);
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
    const bool is_text = std::holds_alternative<std::string Recipe::*>(field.member);
    if (!is_text && value.empty()) continue;
    if (std::string_view(group) != field.group) {
      group = field.group;
      text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", group);
    }
    text += fmt::format("{} = {}\n", field.key, is_text ? toml_string(value) : value);
  }
  return text;
}

}  // namespace onetap
