// Small networks of the tests of this module.
#pragma once

#include "onetap/graph/text.h"

#include <string>

namespace onetap::testing {

inline Graph net(const std::string& lines) {
  return parse_network("onetap-net 1\nnetwork test\n" + lines);
}

}  // namespace onetap::testing
