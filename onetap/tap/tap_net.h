// A frozen network: a Graph of inference ops, and the tensors that are left of it.
#pragma once

#include "onetap/graph/graph.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace onetap {

// How weights lie in the file; in memory they are floats, rounded to the type.
enum class WeightType { kF32, kF16 };

const char* weight_type_name(WeightType type);

// The tensors of one node, row-major.
struct LayerTensors {
  // conv [out, in / groups, kernel rows, kernel columns]; tap conv [out, in / groups, taps]; linear [out, in];
  // affine [channels].
  std::vector<float> weight;
  // [out] where the node has a bias; affine: the shift.
  std::vector<float> bias;
  // Tap conv: [groups of outputs, in / groups, taps], kernel positions rows first, ascending within a slice.
  std::vector<uint16_t> positions;

  bool operator==(const LayerTensors& other) const {
    return weight == other.weight && bias == other.bias && positions == other.positions;
  }
};

// What the network sees of a pixel: (value / 255 - mean) / sd.
struct PixelScale {
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> sd{1, 1, 1};
};

struct TapNet {
  Graph graph;
  std::unordered_map<std::string, LayerTensors> layers;  // by node name
  WeightType weight_type = WeightType::kF32;
  PixelScale pixels;
  std::vector<std::string> classes;          // names of the outputs; may be unknown (empty)
  std::map<std::string, std::string> facts;  // where it came from: free text for people

  const LayerTensors& tensors(const Node& node) const { return layers.at(node.name); }
};

// Shapes of a node's tensors in memory; an absent one is empty.
struct LayerShapes {
  Shape weight, bias, positions;
};
LayerShapes layer_shapes(const Graph& graph, const Node& node);

// kData unless the graph is one of inference ops and every tensor has its size and its positions in range.
void check_tap_net(const TapNet& net);

// The weights of a node with those that a tap conv lost as zeros: [out, in / groups, kernel rows, kernel columns] of a
// convolution, as they are of others.
std::vector<float> dense_weight(const TapNet& net, const Node& node);
Shape dense_shape(const Graph& graph, const Node& node);

// Slices that keep each position of a tap conv's kernel, counted once per group of outputs that share.
std::vector<int64_t> kept_counts(const TapNet& net, const Node& node);

}  // namespace onetap
