// What computes the outputs of an image, for verbs that score networks.
#pragma once

#include "onetap/tap/tap_net.h"

#include <functional>
#include <vector>

namespace onetap::tool {

struct ExecutorOptions {
  bool reference = false;    // plain loops
  int64_t memory_limit = 0;  // each way has its own need of memory
};

// Of a network that outlives it. Several threads may call it at once.
std::function<std::vector<float>(const float*)> make_executor(const TapNet& net, const ExecutorOptions& options);

}  // namespace onetap::tool
