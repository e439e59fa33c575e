#include "onetap/tap/moved_kernel.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/tap/moves.h"
#include "onetap/tap/sparse_to_taps.h"

#include <algorithm>

namespace onetap {
namespace {

constexpr int64_t kMostKernel = 63;  // of a convolution in a Graph, with a centre

}  // namespace

MovedKernel::MovedKernel(const TapNet& net, const Node& node, bool centred) : taps(moved_taps(net, node)) {
  for (const PlaneTap& tap : taps.taps) {
    up = std::max<int64_t>(up, -tap.down);
    down = std::max<int64_t>(down, tap.down);
    left = std::max<int64_t>(left, -tap.right);
    right = std::max<int64_t>(right, tap.right);
  }
  if (!centred) return;
  up = down = std::max(up, down);
  left = right = std::max(left, right);
}

std::vector<float> MovedKernel::weights() const {
  const auto channels = static_cast<int64_t>(taps.from.size()) - 1;
  std::vector<float> values(static_cast<size_t>(channels * size().area()), 0.0f);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = taps.from[static_cast<size_t>(c)]; i < taps.from[static_cast<size_t>(c) + 1]; ++i) {
      const PlaneTap& tap = taps.taps[static_cast<size_t>(i)];
      const int64_t at = (c * size().h + up + tap.down) * size().w + left + tap.right;
      values[static_cast<size_t>(at)] = tap.weight;
    }
  }
  return values;
}

void active_shifts_to_convs(TapNet& net) {
  std::vector<std::string> shifts;
  Graph graph(net.graph.name());
  for (const Node& node : net.graph.nodes()) {
    if (node.op != Op::kActiveShift) {
      graph.add(node);
      continue;
    }
    const MovedKernel kernel(net, node, true);
    const Extent2 size = kernel.size();
    if (std::max(size.h, size.w) > kMostKernel) {
      fail_data("[tap] expected active shifts of at most {} pixels, got one of {} ('{}')", kMostKernel / 2,
                std::max(size.h, size.w) / 2, node.name);
    }
    Node conv = default_node(Op::kConv);
    conv.name = node.name;
    conv.inputs = node.inputs;
    conv.out = conv.groups = node.shape[0];
    conv.kernel = size;
    conv.padding = {size.h / 2, size.w / 2};
    conv.stride = node.stride;
    graph.add(std::move(conv));
    net.layers[node.name] = {Tensor::of(kernel.weights(), {node.shape[0], 1, size.h, size.w}), {}, {}};
    shifts.push_back(node.name);
  }
  if (shifts.empty()) return;
  graph.set_output(net.graph.output());
  net.graph = std::move(graph);
  SparseToTapsOptions options;
  options.layers = shifts;
  sparse_to_taps(net, options);
}

}  // namespace onetap
