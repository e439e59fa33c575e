#include "onetap/base/error.h"

namespace onetap {

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
