#include "onetap/graph/uses.h"

#include <algorithm>

namespace onetap {

Uses::Uses(const Graph& graph) : graph_(graph), readers_(graph.nodes().size()) {
  const std::vector<Node>& nodes = graph.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    index_[nodes[i].name] = i;
    last_use_.push_back(i);
    for (const std::string& input : nodes[i].inputs) {
      const size_t source = index_.at(input);
      readers_[source].push_back(&nodes[i]);
      last_use_[source] = i;
    }
  }
  output_ = index_.at(graph.output());
  last_use_[output_] = nodes.size();
}

const Node* Uses::only_reader(const Node& node) const {
  return count(node) == 1 && !is_output(node) ? readers(node).front() : nullptr;
}

std::vector<const Node*> Uses::ending_at(size_t i) const {
  std::vector<const Node*> ending;
  for (const std::string& input : graph_.nodes()[i].inputs) {
    const Node& source = graph_.nodes()[index_of(input)];
    if (last_use(source) == i && std::find(ending.begin(), ending.end(), &source) == ending.end()) {
      ending.push_back(&source);
    }
  }
  return ending;
}

}  // namespace onetap
