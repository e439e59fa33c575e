#include "onetap/base/error.h"

#include "onetap/base/utf8.h"

namespace onetap {
namespace {

// A name out of a file may be megabytes long: the front says what is wrong, the end where.
std::string one_line(const std::string& message) {
  constexpr size_t kLongest = 4096;
  if (message.size() <= kLongest) return printable(message);
  return printable(message.substr(0, kLongest / 2)) + " ... " +
         printable(message.substr(message.size() - kLongest / 2));
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message) : std::runtime_error(one_line(message)), kind_(kind) {}

int Error::exit_code() const noexcept {
  switch (kind_) {
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kCheck:
      return 3;
    case ErrorKind::kData:
      return 4;
    case ErrorKind::kFailure:
      break;
  }
  return 1;
}

}  // namespace onetap
