// What a network costs: parameters, multiply-accumulates and activations, per node and in total.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <vector>

namespace onetap {

enum class CountRules {
  // As the paper counts the finished network: 32-bit words; a pruned slice keeps `taps` weights and stores
  // each position at ceil(log2 S) bits, once per `share` outputs; a binary weight is 1 bit, and the scale of a trained
  // layer is not counted; batch norm counts scale and shift, an active shift its two distances per channel. Shifts
  // multiply nothing: Wu et al. and Jeon & Kim count none for them.
  kPaper,
  // What a PyTorch counter prints for the network in training: every trainable value, every multiplication
  // of the dense convolutions, the logits of a Shift Attention Layer included.
  kPlain,
};

// How often the paper's figure counts the output of a projection shortcut (1x1 conv and batch norm): with both its
// nodes, as every other pair, or as one value. A sum with a ReLU after it is made in place and counts nothing. A sum
// without one (blocks of MobileNetV2, of shift networks) is a value of its own and counts with the shortcut's: two
// values, of which a projection is one, whatever this rule.
enum class ShortcutRule {
  kAuto,  // once for a network with pruned convolutions, twice for a dense one: what the paper's figure does
  kOnce,
  kTwice,
};

struct CountOptions {
  CountRules rules = CountRules::kPaper;
  ShortcutRule shortcuts = ShortcutRule::kAuto;  // of the paper's rules alone
};

struct LayerCount {
  std::string name;
  double params = 0;       // 32-bit words; the bits of positions make fractions
  double macs = 0;         // for one image
  double empty = 0;        // share of the weights of pruned slices that were dropped; their MACs are not made
  double activations = 0;  // values for one image. Paper: input, conv, batch norm, active shift, global average pool,
                           // sums without a ReLU, final values. Plain: outputs of conv and linear layers
};

struct NetworkCount {
  std::vector<LayerCount> layers;  // one per node, in order
  double params = 0;
  double macs = 0;
  double activations = 0;
  double empty = 0;  // over all pruned layers
};

NetworkCount count_network(const Graph& graph, const CountOptions& options);
inline NetworkCount count_network(const Graph& graph, CountRules rules) {
  return count_network(graph, CountOptions{rules, ShortcutRule::kAuto});
}

}  // namespace onetap
