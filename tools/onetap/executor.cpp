#include "tools/onetap/executor.h"

#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session_pool.h"

#include <memory>

namespace onetap::tool {

std::function<std::vector<float>(const float*)> make_executor(const TapNet& net, const ExecutorOptions& options) {
  if (options.reference && net.is_int8()) {
    const auto reference = std::make_shared<const Int8Reference>(net, options.memory_limit);
    return [reference](const float* image) { return reference->run(image); };
  }
  if (options.reference) {
    check_reference(net, options.memory_limit);
    return [&net, limit = options.memory_limit](const float* image) { return run_reference(net, image, limit); };
  }
  ModelOptions model;
  model.memory_limit = options.memory_limit;
  const auto sessions = std::make_shared<SessionPool>(std::make_shared<const Model>(net, model));
  return [sessions](const float* image) { return sessions->run(image); };
}

}  // namespace onetap::tool
