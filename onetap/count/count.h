// What a network costs: parameters and multiply-accumulates, per node and in total.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <vector>

namespace onetap {

enum class CountRules {
  // As the paper counts the finished network: 32-bit words; a pruned slice keeps `taps` weights and stores
  // each position at ceil(log2 S) bits, once per `share` outputs; batch norm counts scale and shift.
  kPaper,
  // What a PyTorch counter prints for the network in training: every trainable value, every multiplication
  // of the dense convolutions, the logits of a Shift Attention Layer included.
  kPlain,
};

struct LayerCount {
  std::string name;
  double params = 0;  // 32-bit words; the bits of positions make fractions
  double macs = 0;    // for one image
};

struct NetworkCount {
  std::vector<LayerCount> layers;  // one per node, in order
  double params = 0;
  double macs = 0;
};

// Bits that store one position of a kernel with this many: ceil(log2 positions).
int position_bits(int64_t positions);

// Groups of outputs that share positions; the last one is smaller where share does not divide `out`.
int64_t share_groups(int64_t out, int64_t share);

NetworkCount count_network(const Graph& graph, CountRules rules);

}  // namespace onetap
