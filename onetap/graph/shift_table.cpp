#include "onetap/graph/shift_table.h"

#include "onetap/base/fail.h"
#include "onetap/graph/shift.h"

#include <algorithm>

namespace onetap {
namespace {

using Layers = std::vector<const TapShares*>;

Layers of_kernel(const std::vector<TapShares>& all, Extent2 kernel) {
  Layers some;
  for (const TapShares& layer : all) {
    if (layer.kernel == kernel) some.push_back(&layer);
  }
  return some;
}

// Whether a shift that stands before `conv` would have this name (graph/rivals.cpp gives them).
bool stands_for(const std::string& shift, const std::string& conv) {
  if (shift == conv + "_shift") return true;
  const size_t at = shift.rfind("shift");
  return at != std::string::npos && shift.substr(0, at) + "conv" + shift.substr(at + 5) == conv;
}

// `index` among `count` shifts, as a place among the layers.
const TapShares& at_depth(const Layers& layers, size_t index, size_t count) {
  return *layers[(2 * index + 1) * layers.size() / (2 * count)];
}

}  // namespace

void set_shift_table(Graph& graph, const std::vector<TapShares>& learned) {
  const auto is_shift_of = [](const Node& node, Extent2 kernel) {
    return node.op == Op::kShift && node.kernel == kernel;
  };
  bool any = false;
  Graph changed(graph.name());
  for (Node node : graph.nodes()) {
    if (node.op == Op::kShift) {
      any = true;
      const Extent2 kernel = node.kernel;
      const Layers layers = of_kernel(learned, kernel);
      if (layers.empty()) {
        fail_data("[graph] {}: expected learned taps of {}x{} kernels, got none", node.name, kernel.h, kernel.w);
      }
      const auto named = std::find_if(layers.begin(), layers.end(),
                                      [&](const TapShares* layer) { return stands_for(node.name, layer->layer); });
      const auto& before = changed.nodes();
      const auto index = static_cast<size_t>(
          std::count_if(before.begin(), before.end(), [&](const Node& other) { return is_shift_of(other, kernel); }));
      const auto count = static_cast<size_t>(std::count_if(
          graph.nodes().begin(), graph.nodes().end(), [&](const Node& other) { return is_shift_of(other, kernel); }));
      const TapShares& source = named != layers.end() ? **named : at_depth(layers, index, count);
      node.counts = divide_channels(node.shape[0], source.shares);
    }
    changed.add(std::move(node));
  }
  if (!any) fail_usage("[graph] {} has no shift to give a table to", graph.name());
  changed.set_output(graph.output());
  graph = std::move(changed);
}

}  // namespace onetap
