#include "tools/onetap/training_advice.h"

namespace onetap::tool {

const char* training_advice() {
  return "install it (Debian: onetap-training) or build with -DONETAP_TRAINING=ON";
}

}  // namespace onetap::tool
