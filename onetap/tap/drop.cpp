#include "onetap/tap/drop.h"

#include "onetap/base/fail.h"
#include "onetap/graph/tap_layout.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

struct Entry {
  size_t layer = 0;  // of the result
  int64_t code = 0;  // index into the layer's codes
  int64_t weights = 0;
  double score = 0;
};

bool by_score(const Entry& a, const Entry& b) {
  return a.score < b.score;
}

// The entries of a layer that are not empty, the smallest first.
std::vector<Entry> scored_entries(const TapLayout& layout, const std::vector<uint16_t>& codes, const float* weight,
                                  size_t layer) {
  std::vector<double> squares(codes.size(), 0.0);
  for (int64_t slice = 0; slice < layout.slices(); ++slice) {
    const int64_t first = layout.first_code(slice / layout.inputs, slice % layout.inputs);
    for (int64_t t = 0; t < layout.taps; ++t) {
      const double value = weight[slice * layout.taps + t];
      squares[static_cast<size_t>(first + t)] += value * value;
    }
  }
  std::vector<Entry> entries;  // their scores are mean squares at first
  for (int64_t i = 0; i < layout.codes(); ++i) {
    if (codes[static_cast<size_t>(i)] == layout.none()) continue;
    const int64_t weights = layout.slices_of(i / layout.taps);
    entries.push_back({layer, i, weights, squares[static_cast<size_t>(i)] / static_cast<double>(weights)});
  }
  std::stable_sort(entries.begin(), entries.end(), by_score);
  double left = 0;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    left += entry->score * static_cast<double>(entry->weights);
    if (entry->score > 0) entry->score = std::sqrt(entry->score / left);
  }
  return entries;
}

// How many of the entries, sorted by score, go.
size_t count_to_drop(const std::vector<Entry>& entries, const DropResult& result, const DropOptions& options) {
  size_t count = 0;
  int64_t left = result.weights - result.dropped;
  // A share like 0.6 of 10 weights is 6 of them, whatever rounding says.
  const double least = options.density.value_or(0) * static_cast<double>(result.weights) * (1 - 1e-12);
  for (const Entry& entry : entries) {
    const bool goes =
        options.density ? static_cast<double>(left - entry.weights) >= least : entry.score < options.below;
    if (!goes && entry.score > 0) break;
    left -= entry.weights;
    ++count;
  }
  return count;
}

// Marks the entries of one layer, then closes the gaps: empty entries are the last of their set.
void empty_entries(TapNet& net, const std::string& name, const std::vector<int64_t>& dropped) {
  const TapLayout layout = tap_layout(net.graph, net.graph.node(name));
  LayerTensors& tensors = net.layers.at(name);
  const auto none = static_cast<uint16_t>(layout.none());
  for (const int64_t code : dropped) tensors.positions[static_cast<size_t>(code)] = none;
  const Tensor before = tensors.weight;
  const std::vector<uint16_t> codes = tensors.positions;
  const auto* from = before.data<float>();
  auto* to = tensors.weight.data<float>();
  for (int64_t slice = 0; slice < layout.slices(); ++slice) {
    const int64_t first = layout.first_code(slice / layout.inputs, slice % layout.inputs);
    int64_t kept = 0;
    for (int64_t t = 0; t < layout.taps; ++t) {
      const uint16_t code = codes[static_cast<size_t>(first + t)];
      if (code == none) continue;
      to[slice * layout.taps + kept] = from[slice * layout.taps + t];
      tensors.positions[static_cast<size_t>(first + kept)] = code;
      ++kept;
    }
    for (; kept < layout.taps; ++kept) tensors.positions[static_cast<size_t>(first + kept)] = none;
  }
  update_dropped(net, name);
}

}  // namespace

DropResult drop_weights(TapNet& net, const DropOptions& options) {
  if (options.density && !(*options.density > 0 && *options.density <= 1)) {
    fail_usage("[tap] expected a density above 0 and at most 1, got {}", *options.density);
  }
  if (!(options.below >= 0 && std::isfinite(options.below))) {
    fail_usage("[tap] expected a threshold of at least 0, got {}", options.below);
  }
  DropResult result;
  std::vector<Entry> entries;
  for (const Node& node : net.graph.nodes()) {
    if (node.op != Op::kTapConv) continue;
    const TapLayout layout = tap_layout(net.graph, node);
    const LayerTensors& tensors = net.tensors(node);
    const auto more = scored_entries(layout, tensors.positions, floats_of(node, tensors.weight), result.layers.size());
    entries.insert(entries.end(), more.begin(), more.end());
    result.layers.push_back({node.name, layout.weights(), layout.dropped});
    result.weights += layout.weights();
    result.dropped += layout.dropped;
  }
  std::stable_sort(entries.begin(), entries.end(), by_score);
  const size_t count = count_to_drop(entries, result, options);
  std::vector<std::vector<int64_t>> dropped(result.layers.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (i < count) {
      dropped[entry.layer].push_back(entry.code);
      result.layers[entry.layer].dropped += entry.weights;
      result.dropped += entry.weights;
    } else if (entry.score < DropResult::kFaint) {
      result.faint += entry.weights;
    }
  }
  result.below = options.density ? (count < entries.size() ? entries[count].score : 0) : options.below;
  for (size_t i = 0; i < dropped.size(); ++i) {
    if (!dropped[i].empty()) empty_entries(net, result.layers[i].name, dropped[i]);
  }
  return result;
}

}  // namespace onetap
