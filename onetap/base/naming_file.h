// Errors about a network, said with the file that it came from: modules that get a network know no files.
#pragma once

#include "onetap/base/error.h"

#include <filesystem>
#include <string>

namespace onetap {

// What `action` returns; to errors of it the file is added, unless they name it themselves.
template <typename Action>
auto naming_file(const std::filesystem::path& file, Action&& action) -> decltype(action()) {
  try {
    return action();
  } catch (const Error& problem) {
    const std::string text = problem.what(), name = file.string();
    if (text.find(name) != std::string::npos) throw;
    throw Error(problem.kind(), text + " (" + name + ")");
  }
}

}  // namespace onetap
