// What a process said last.
#pragma once

#include <filesystem>
#include <string>

namespace onetap::tool {

// The last line of a log that says something; "" if there is none.
std::string last_words(const std::filesystem::path& log);

}  // namespace onetap::tool
