// A peer of a benchmark that is not installed, or not in this build: a comparison with several leaves it out.
#pragma once

#include "onetap/base/error.h"

#include <string>

namespace onetap::tool {

class MissingPeer : public Error {
 public:
  explicit MissingPeer(const std::string& message) : Error(ErrorKind::kUsage, message) {}
};

}  // namespace onetap::tool
