#include "onetap/count/memory.h"

#include "onetap/graph/op.h"
#include "onetap/graph/uses.h"

#include <algorithm>

namespace onetap {
namespace {

bool works_in_place(Op op) {
  return is_activation(op) || op == Op::kAdd || op == Op::kMul || op == Op::kAffine || op == Op::kBatchNorm ||
         op == Op::kFlatten;
}

}  // namespace

int64_t peak_activations(const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  const Uses uses(graph);
  int64_t live = 0, peak = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<const Node*> ending = uses.ending_at(i);
    const int64_t size = element_count(nodes[i].shape);
    // A factor per channel that ends has no room for the product.
    const bool has_room = std::any_of(ending.begin(), ending.end(),
                                      [&](const Node* input) { return element_count(input->shape) == size; });
    const bool in_place = works_in_place(nodes[i].op) && has_room;
    peak = std::max(peak, live + (in_place ? 0 : size));
    live += size;
    for (const Node* input : ending) live -= element_count(input->shape);
    if (uses.last_use(nodes[i]) == i) live -= size;  // nobody reads it
  }
  return peak;
}

}  // namespace onetap
