// Of the Python package, whose program cannot load a module of Debian's.
#include "tools/onetap/training_advice.h"

namespace onetap::tool {

const char* training_advice() {
  return "the Python package has none; train with onetap.torch, or build onetap from its sources";
}

}  // namespace onetap::tool
