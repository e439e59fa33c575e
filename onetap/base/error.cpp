#include "onetap/base/error.h"

#include "onetap/base/utf8.h"

namespace onetap {

Error::Error(ErrorKind kind, const std::string& message) : std::runtime_error(printable(message)), kind_(kind) {}

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
