// A frozen network: a Graph of inference ops, and the tensors that are left of it.
#pragma once

#include "onetap/base/tensor.h"
#include "onetap/graph/graph.h"
#include "onetap/tap/weight_scale.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace onetap {

// How the float weights of a network lie in its file. In memory they are F32, rounded to the type: nothing computes in
// F16, and whoever reads a weight wants a float.
enum class WeightType { kF32, kF16 };

// Whether a node's weights are of that type: the places of an active shift are F32 in every file.
bool follows_weight_type(const Node& node);

// The tensors of one node, row-major, of any type.
struct LayerTensors {
  // conv [out, in / groups, kernel rows, kernel columns]; tap conv [out, in / groups, taps]; linear [out, in];
  // affine [channels]; active shift [channels, 2]: rows and columns.
  Tensor weight;
  // [out] where the node has a bias, else empty; affine: the shift.
  Tensor bias;
  // Tap conv: the codes of its TapLayout, ascending within a set. The weight of an empty entry is there, and 0.
  std::vector<uint16_t> positions;
  // int8 networks: what the weight (I8) and the bias (I16) stand for.
  WeightScale scale = {};  // absent in others

  bool operator==(const LayerTensors& other) const {
    return weight == other.weight && bias == other.bias && positions == other.positions && scale == other.scale;
  }
};

// What the network sees of a pixel: (value / 255 - mean) / sd.
struct PixelScale {
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> sd{1, 1, 1};
};

// kData unless its numbers are finite and sd is above 0.
void check_pixels(const PixelScale& pixels);

// Which of the PixelScale's numbers a channel has: images have 3 channels, or 1, which is then the first; further ones
// are scaled as the third.
size_t pixel_channel(int64_t channel);
// (value / 255 - mean) / sd, computed in doubles.
float scaled_pixel(const PixelScale& pixels, int64_t channel, int value);

struct TapNet {
  Graph graph;
  std::unordered_map<std::string, LayerTensors> layers;  // by node name
  WeightType weight_type = WeightType::kF32;
  PixelScale pixels;
  // int8 networks: the scale of every value that the execution plan keeps, by the node whose result it is. The
  // network's input is one of them; its output is not where a convolution or a linear layer gives it in floats.
  std::map<std::string, float> value_scales;
  // The largest magnitudes of values, by the same names, where training for int8 has found them: a quantizer takes them
  // in place of calibration. Empty in others.
  std::map<std::string, float> value_ranges;
  std::vector<std::string> classes;          // names of the outputs; may be unknown (empty)
  std::map<std::string, std::string> facts;  // where it came from: free text for people

  const LayerTensors& tensors(const Node& node) const { return layers.at(node.name); }
  bool is_int8() const { return !value_scales.empty(); }
};

// How the weights of a network lie in its file: f32, f16 or int8 (all but those of kept layers).
const char* weight_type_name(const TapNet& net);

// Shapes of a node's tensors in memory; an absent one is empty.
struct LayerShapes {
  Shape weight, bias, positions;
};
LayerShapes layer_shapes(const Graph& graph, const Node& node);

// kData unless the graph is one of inference ops, every tensor has its shape, floats are finite, positions in range,
// as many of them empty as the node says, binary weights of one magnitude per output, and pixels are scaled by finite
// numbers.
void check_tap_net(const TapNet& net);

// The values of a node's weight or bias, null if it is empty: for code that computes in F32. kData with the node's name
// if they are of another type.
const float* floats_of(const Node& node, const Tensor& tensor);

// What the bytes of an int8 layer's weight stand for.
Tensor scaled_weight(const LayerTensors& layer);

// The weights of a node with those that a tap conv lost as zeros: [out, in / groups, kernel rows, kernel columns] of a
// convolution, as they are of others. Of an int8 layer what its bytes stand for.
std::vector<float> dense_weight(const TapNet& net, const Node& node);
// The bytes themselves, of an int8 layer.
std::vector<int8_t> dense_bytes(const TapNet& net, const Node& node);
Shape dense_shape(const Graph& graph, const Node& node);

// After positions of a tap conv became empty: clears the weights of empty entries, and writes into the graph how many
// there are (`dropped`).
void update_dropped(TapNet& net, const std::string& name);

// Slices that keep each position of a tap conv's kernel.
std::vector<int64_t> kept_counts(const TapNet& net, const Node& node);

}  // namespace onetap
