#include "onetap/count/memory.h"

#include <algorithm>
#include <unordered_map>

namespace onetap {
namespace {

bool works_in_place(Op op) {
  return op == Op::kRelu || op == Op::kAdd || op == Op::kAffine || op == Op::kBatchNorm || op == Op::kFlatten;
}

}  // namespace

int64_t peak_activations(const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  std::unordered_map<std::string, size_t> last_reader;
  for (size_t i = 0; i < nodes.size(); ++i) {
    last_reader[nodes[i].name] = i;  // a value that nobody reads ends at once
    for (const std::string& input : nodes[i].inputs) last_reader[input] = i;
  }
  last_reader[graph.output()] = nodes.size();

  int64_t live = 0, peak = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    std::vector<std::string> ending = node.inputs;
    std::sort(ending.begin(), ending.end());
    ending.erase(std::unique(ending.begin(), ending.end()), ending.end());
    ending.erase(
        std::remove_if(ending.begin(), ending.end(), [&](const std::string& input) { return last_reader[input] != i; }),
        ending.end());
    const int64_t size = element_count(node.shape);
    const bool in_place = works_in_place(node.op) && !ending.empty();
    peak = std::max(peak, live + (in_place ? 0 : size));
    live += size;
    for (const std::string& input : ending) live -= element_count(graph.node(input).shape);
    if (last_reader[node.name] == i) live -= size;
  }
  return peak;
}

}  // namespace onetap
