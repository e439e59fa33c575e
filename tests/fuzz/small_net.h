// Which networks a fuzzer runs: strange shapes, little work.
#pragma once

#include "onetap/tap/tap_net.h"

namespace onetap::fuzz {

constexpr int64_t kFewValues = 1 << 16;

inline bool is_small(const TapNet& net) {
  int64_t values = 0, weights = 0;
  for (const Node& node : net.graph.nodes()) {
    if (element_count(node.shape) > kFewValues) return false;
    values += element_count(node.shape);
    const auto found = net.layers.find(node.name);
    if (found != net.layers.end()) {
      weights += static_cast<int64_t>(found->second.weight.count()) * element_count(node.shape);
    }
    if (values > kFewValues || weights > (int64_t{1} << 22)) return false;
    if (node.kernel.area() * element_count(node.shape) > (int64_t{1} << 20)) return false;  // pools
  }
  return true;
}

}  // namespace onetap::fuzz
