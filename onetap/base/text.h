// Small text helpers: parsing whole fields, globs, and "did you mean".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// Pieces between separators; empty pieces are kept.
std::vector<std::string_view> split(std::string_view text, char separator);

// Calls `each` with every non-empty line that has its end, and its number from 1: a file that is being appended to may
// stop in the middle of a line.
void for_each_whole_line(std::string_view text, const std::function<void(std::string_view, size_t)>& each);

// Words between runs of blanks and tabs.
std::vector<std::string_view> words(std::string_view line);

std::string_view trim(std::string_view text);

// A message without the "[module] " in front, to be said within another.
std::string_view without_module(std::string_view message);

// The whole of `text` as a number, or nothing: no sign for unsigned, no trailing characters.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

// Shell pattern: `*` any characters (dots included), `?` one character.
bool glob_match(std::string_view pattern, std::string_view text);

// The candidate nearest to `word` by edit distance, if it is near enough to be a typing error.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

// ", did you mean 'x'?" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
// "sgd or adamw", "auto, softmax or straight-through"; of one choice or more.
std::string one_of(const std::vector<std::string>& choices);

// A cell of a CSV file: in quotes where commas, quotes or line ends ask for them, and after an apostrophe where a
// spreadsheet would take the text for a formula (=, +, - or @ in front of what is no number).
std::string csv_field(const std::string& text);

// 1234567 -> "1,234,567"; a fraction (981609.5) keeps one decimal.
std::string with_thousands(double value);

}  // namespace onetap
