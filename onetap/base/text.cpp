#include "onetap/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>

namespace onetap {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (;;) {
    const size_t end = text.find(separator, start);
    if (end == std::string_view::npos) {
      parts.push_back(text.substr(start));
      return parts;
    }
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
}

void for_each_whole_line(std::string_view text, const std::function<void(std::string_view, size_t)>& each) {
  const auto pieces = split(text, '\n');
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (!trim(pieces[i]).empty()) each(pieces[i], i + 1);
  }
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> found;
  size_t i = 0;
  while (i < line.size()) {
    const size_t start = line.find_first_not_of(" \t\r", i);
    if (start == std::string_view::npos) break;
    const size_t end = std::min(line.find_first_of(" \t\r", start), line.size());
    found.push_back(line.substr(start, end - start));
    i = end;
  }
  return found;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

namespace {

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view without_module(std::string_view message) {
  const size_t end = message.find("] ");
  const bool has_module =
      !message.empty() && message[0] == '[' && end != std::string_view::npos && message.find(' ') > end;  // one word
  return has_module ? message.substr(end + 2) : message;
}

std::optional<int64_t> parse_int(std::string_view text) {
  return parse_whole<int64_t>(text);
}

std::optional<double> parse_double(std::string_view text) {
  return parse_whole<double>(text);
}

bool glob_match(std::string_view pattern, std::string_view text) {
  // Iterative with one point of return per '*': linear in practice, no recursion on hostile input.
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestWord = 64;  // beyond it, nobody mistyped a key of ours
  if (word.size() > kLongestWord) return std::nullopt;
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto near = nearest(word, candidates);
  return near ? fmt::format(", did you mean '{}'?", *near) : std::string();
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string one_of(const std::vector<std::string>& choices) {
  const std::vector<std::string> first(choices.begin(), choices.end() - 1);
  return first.empty() ? choices.back() : join(first, ", ") + " or " + choices.back();
}

std::string csv_field(const std::string& given) {
  const bool starts_formula = !given.empty() && std::string_view("=+-@\t\r").find(given[0]) != std::string_view::npos;
  const std::string text = starts_formula && !parse_double(given) ? "'" + given : given;
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string with_thousands(double value) {
  const bool whole = value == std::floor(value);
  std::string digits = whole ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t first_digit = digits[0] == '-' ? 1 : 0;
  for (size_t i = point; i > first_digit + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

}  // namespace onetap
