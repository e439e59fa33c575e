// The text form of a network: one node a line, readable, and exact both ways.
//
//   onetap-net 1
//   network tiny
//   x = input 3x32x32
//   conv1 = conv x out=16 kernel=3 pad=1
//   layer1.conv = conv conv1 out=16 kernel=3 pad=1 method=sal taps=1 share=4
//   pool = gap layer1.conv
//   fc = linear pool out=10
//   output fc
#pragma once

#include "onetap/graph/graph.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace onetap {

// parse_network(network_text(g)) == g for every graph.
std::string network_text(const Graph& graph);

// kUsage with the line number for anything that is not a network.
Graph parse_network(std::string_view text);
Graph read_network(const std::filesystem::path& path);

}  // namespace onetap
