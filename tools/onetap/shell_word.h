// Words of a command line as a shell reads them, to be copied from messages and records.
#pragma once

#include <string>
#include <vector>

namespace onetap::tool {

// In single quotes where it needs them.
std::string shell_word(const std::string& text);

// "onetap train --layers 'layer2.*'"
std::string shell_line(const std::vector<std::string>& words);

}  // namespace onetap::tool
