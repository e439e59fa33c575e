// Verbs that read one file and write another must not be given one for both.
#pragma once

#include "onetap/base/fail.h"

#include <filesystem>

namespace onetap::tool {

// kUsage if `out` is the file that is read, by this or by another name.
inline void check_other_file(const char* verb, const std::filesystem::path& source, const std::filesystem::path& out) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(source, out, ignored)) return;
  fail_usage("[{}] expected another file to write than the one that is read, got {} for both", verb, out.string());
}

}  // namespace onetap::tool
