#include "tools/onetap/last_words.h"

#include "onetap/base/file.h"
#include "onetap/base/text.h"

namespace onetap::tool {

std::string last_words(const std::filesystem::path& log) {
  try {
    const std::string text = read_file(log);
    const std::string_view trimmed = trim(text);
    return std::string(trim(trimmed.substr(trimmed.find_last_of('\n') + 1)));
  } catch (const Error&) {
    return "";
  }
}

}  // namespace onetap::tool
