// Who reads what: computed once per graph, asked by everything that fuses, frees or places values.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace onetap {

// Of a graph that outlives it. Nodes are numbered by their place in graph.nodes().
class Uses {
 public:
  explicit Uses(const Graph& graph);

  size_t index_of(std::string_view name) const { return index_.at(std::string(name)); }
  // Nodes that read this one's value, in order; one that reads it twice stands there twice. The caller, who reads the
  // network's output, is not among them.
  const std::vector<const Node*>& readers(const Node& node) const { return readers_[index_of(node.name)]; }
  bool is_output(const Node& node) const { return index_of(node.name) == output_; }
  // Readings of the value, the caller's of the output included.
  size_t count(const Node& node) const { return readers(node).size() + (is_output(node) ? 1 : 0); }
  // The one node that reads this value, if there is just one reading and the caller needs it not.
  const Node* only_reader(const Node& node) const;
  // The last node that needs the value; the node itself if nobody reads it; nodes().size() for the output.
  size_t last_use(const Node& node) const { return last_use_[index_of(node.name)]; }
  // Inputs of node `i`, each once, that nobody needs after it.
  std::vector<const Node*> ending_at(size_t i) const;

 private:
  const Graph& graph_;
  size_t output_ = 0;
  std::unordered_map<std::string, size_t> index_;
  std::vector<std::vector<const Node*>> readers_;
  std::vector<size_t> last_use_;
};

}  // namespace onetap
