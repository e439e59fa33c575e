// Three numbers, for red, green and blue: the mean or the sd by which pixels are scaled.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace onetap {

using PerColour = std::array<float, 3>;

// "0.4914,0.4822,0.4465"; nothing for a text that is not three finite numbers.
std::optional<PerColour> parse_per_colour(std::string_view text);

// In the form that parse_per_colour() reads, with as many digits as the numbers need.
std::string per_colour_text(const PerColour& numbers);

}  // namespace onetap
