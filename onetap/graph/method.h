// Choosing which convolutions of a network a training method applies to.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <vector>

namespace onetap {

// The default choice of the paper: every k x k convolution but the first one.
std::vector<std::string> prunable_convs(const Graph& graph);

// Those of `all` that `patterns` name: globs separated by commas, a leading '!' excludes, "" is `usual`; an exclusion
// that comes first takes from `usual`. kUsage if a pattern matches nothing; `what` says what the names are.
std::vector<std::string> select_names(const std::vector<std::string>& all, const std::vector<std::string>& usual,
                                      const std::string& patterns, const std::string& what);

// Gives `method` to the layers that `patterns` names: globs separated by commas, a leading '!' excludes, "" is the
// method's default choice. Every other layer becomes `conv`. A method that is another network (MethodInfo::rewrite)
// changes the nodes. kUsage if a pattern matches nothing.
void apply_method(Graph& graph, const Method& method, const std::string& patterns);

// Whether any convolution has a method of its own, other than `conv`.
bool has_methods(const Graph& graph);

// Whether any convolution is trained in another form than it is frozen in.
bool has_soft_form(const Graph& graph);
// What tables call a network without one: dense, or trained (by a method that keeps its form).
const char* only_form(const Graph& graph);

// How a convolution is trained or was pruned: "dense", "sal taps=1 share=1"; "" for every other op.
std::string method_text(const Node& node);

// What the network's layers are, in a few words: "dense", "sal taps=1 share=1", "shift", or the several kinds in use.
std::string method_summary(const Graph& graph);

}  // namespace onetap
