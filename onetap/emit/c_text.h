// Numbers and names as text of generated C.
#pragma once

#include "onetap/tap/tap_net.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

namespace onetap {

template <typename T>
void append_number(std::string& text, T value) {
  if constexpr (std::is_same_v<T, float>) {
    const size_t begin = text.size();
    fmt::format_to(std::back_inserter(text), "{:.9g}", value);
    if (text.find_first_of(".en", begin) == std::string::npos) text += ".0";
    text += 'f';
  } else {
    fmt::format_to(std::back_inserter(text), "{}", static_cast<int64_t>(value));
  }
}

// "1, 2, 3" in lines of about 100 characters.
template <typename T>
std::string number_list(const std::vector<T>& values) {
  std::string text = "  ";
  size_t line = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    append_number(text, values[i]);
    text += ',';
    if (i + 1 < values.size() && text.size() - line > 100) {
      text += "\n  ";
      line = text.size();
    }
  }
  return text + "\n";
}

// "1.0f, 2.0f"
std::string number_row(const std::vector<float>& values);
// Those of two outputs, eight at a time, as the fragment kPairs defines it.
std::string pair_list(const std::vector<int8_t>& values);

// A name as a part of an identifier.
std::string identifier_part(const std::string& name);
std::string upper_case(std::string name);
// The first lines of every generated file.
std::string generated_note(const TapNet& net, const std::string& what);

}  // namespace onetap
