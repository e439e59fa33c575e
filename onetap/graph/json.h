// The JSON form of a network: what a .tap file carries, and what a script reads without a parser of its own.
//
//   {"name": "tiny", "nodes": [{"name": "x", "op": "input", "shape": [3, 32, 32]},
//                              {"name": "c", "op": "conv", "inputs": ["x"], "out": 16, "kernel": [3, 3], "pad": [1,
//                              1]}],
//    "output": "c"}
//
// Attributes at their defaults are left out, as in the text form.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <string_view>

namespace onetap {

// parse_graph_json(graph_json(g)) == g for every graph.
std::string graph_json(const Graph& graph);

// kData naming `label` for anything that is not a network.
Graph parse_graph_json(std::string_view text, std::string_view label);

}  // namespace onetap
