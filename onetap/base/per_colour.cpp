#include "onetap/base/per_colour.h"

#include "onetap/base/text.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace onetap {

std::optional<PerColour> parse_per_colour(std::string_view text) {
  const auto parts = split(text, ',');
  PerColour numbers{};
  if (parts.size() != numbers.size()) return std::nullopt;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto value = parse_double(trim(parts[i]));
    if (!value || !(std::abs(*value) <= std::numeric_limits<float>::max())) return std::nullopt;
    numbers[i] = static_cast<float>(*value);
  }
  return numbers;
}

std::string per_colour_text(const PerColour& numbers) {
  return fmt::format("{},{},{}", numbers[0], numbers[1], numbers[2]);
}

}  // namespace onetap
