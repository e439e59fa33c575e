#include "onetap/recipe/toml_limits.h"

#include "onetap/base/fail.h"

#include <algorithm>

namespace onetap {
namespace {

// Recipes are flat; [provenance] may hold what it likes, within reason.
constexpr int kMaxDots = 16;

// The position behind the string that begins at `at` with a quote. A string of one line ends with its line, closed or
// not: the parser refuses it there.
size_t skip_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const bool escapes = quote == '"';
  const bool long_form = text.substr(at, 3) == std::string_view(quote == '"' ? "\"\"\"" : "'''");
  size_t quotes = 0;
  for (at += long_form ? 3 : 1; at < text.size(); ++at) {
    const char c = text[at];
    if (c == quote) {
      // A long string may end with up to five quotes, of which the last three close it.
      if (++quotes == (long_form ? 5u : 1u)) return at + 1;
      continue;
    }
    if (quotes >= 3 || (!long_form && c == '\n')) return at;
    quotes = 0;
    if (escapes && c == '\\') ++at;
  }
  return text.size();
}

}  // namespace

void check_key_depth(std::string_view text, std::string_view label) {
  int dots = 0;  // since the last place where a key can begin
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = skip_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '\n' || c == '=' || c == ',' || c == '[' || c == '{') dots = 0;
    if (c == '.' && ++dots > kMaxDots) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      fail_usage("[recipe] expected keys of at most {} parts, got more ({}:{})", kMaxDots + 1, label, line);
    }
    ++at;
  }
}

}  // namespace onetap
