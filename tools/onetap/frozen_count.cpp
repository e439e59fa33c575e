#include "tools/onetap/frozen_count.h"

#include "onetap/tap/tap_file.h"

namespace onetap::tool {

NetworkCount count_frozen(const TapNet& net, const CountOptions& options) {
  NetworkCount count = count_network(net.graph, options);
  if (!net.is_int8()) return count;
  constexpr double kWord = sizeof(float);
  const std::vector<uint64_t> bytes = stored_bytes(net);
  count.params = 0;
  for (size_t i = 0; i < count.layers.size(); ++i) {
    count.layers[i].params = static_cast<double>(bytes[i]) / kWord;
    count.params += count.layers[i].params;
  }
  return count;
}

}  // namespace onetap::tool
