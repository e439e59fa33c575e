#include "onetap/count/count.h"

namespace onetap {
namespace {

void count_conv(const Graph& graph, const Node& node, CountRules rules, LayerCount& count) {
  const int64_t positions = node.kernel.area();
  const double slices = static_cast<double>(node.out * (in_channels(graph, node) / node.groups));
  const double pixels = static_cast<double>(node.shape[1] * node.shape[2]);
  const bool sal = node.is_sal();
  const double taps = static_cast<double>(node.method.taps);
  const double shared_slices =
      sal ? static_cast<double>(share_groups(node.out, node.method.share)) * slices / static_cast<double>(node.out)
          : 0.0;
  const double weights_per_slice = sal && rules == CountRules::kPaper ? taps : static_cast<double>(positions);

  count.params = slices * weights_per_slice + (node.bias ? static_cast<double>(node.out) : 0.0);
  if (sal && rules == CountRules::kPaper) count.params += shared_slices * taps * position_bits(positions) / 32.0;
  if (sal && rules == CountRules::kPlain) count.params += shared_slices * taps * static_cast<double>(positions);
  count.macs = slices * weights_per_slice * pixels;
}

}  // namespace

int position_bits(int64_t positions) {
  int bits = 0;
  while ((int64_t{1} << bits) < positions) ++bits;
  return bits;
}

int64_t share_groups(int64_t out, int64_t share) {
  return (out + share - 1) / share;
}

NetworkCount count_network(const Graph& graph, CountRules rules) {
  NetworkCount total;
  for (const Node& node : graph.nodes()) {
    LayerCount count;
    count.name = node.name;
    switch (node.op) {
      case Op::kConv:
        count_conv(graph, node, rules, count);
        break;
      case Op::kBatchNorm:
        count.params = 2.0 * static_cast<double>(node.shape[0]);
        break;
      case Op::kLinear:
        count.macs = static_cast<double>(in_channels(graph, node) * node.out);
        count.params = count.macs + (node.bias ? static_cast<double>(node.out) : 0.0);
        break;
      default:
        break;
    }
    total.params += count.params;
    total.macs += count.macs;
    total.layers.push_back(std::move(count));
  }
  return total;
}

}  // namespace onetap
