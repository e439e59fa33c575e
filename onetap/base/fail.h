// Formatted throws for the library's own sources; public headers stay free of fmt.
#pragma once

#include "onetap/base/error.h"

#include <fmt/format.h>

#include <utility>

namespace onetap {

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kFailure, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void fail_usage(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kUsage, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void fail_data(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kData, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace onetap
