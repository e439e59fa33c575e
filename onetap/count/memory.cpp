#include "onetap/count/memory.h"

#include "onetap/graph/uses.h"

#include <algorithm>

namespace onetap {
namespace {

bool works_in_place(Op op) {
  return op == Op::kRelu || op == Op::kAdd || op == Op::kAffine || op == Op::kBatchNorm || op == Op::kFlatten;
}

}  // namespace

int64_t peak_activations(const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  const Uses uses(graph);
  int64_t live = 0, peak = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<const Node*> ending = uses.ending_at(i);
    const int64_t size = element_count(nodes[i].shape);
    const bool in_place = works_in_place(nodes[i].op) && !ending.empty();
    peak = std::max(peak, live + (in_place ? 0 : size));
    live += size;
    for (const Node* input : ending) live -= element_count(input->shape);
    if (uses.last_use(nodes[i]) == i) live -= size;  // nobody reads it
  }
  return peak;
}

}  // namespace onetap
