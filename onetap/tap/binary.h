// Weights of one bit: every output has one magnitude, and its weights a sign each.
#pragma once

#include "onetap/base/tensor.h"
#include "onetap/graph/graph.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// A layer of a frozen network whose weights are such: its method is `binary`.
bool is_binary(const Node& node);

// kData naming `layer` unless the weight [outputs, ...] is of F32 and all weights of an output have one magnitude.
void check_binary(const Tensor& weight, std::string_view layer);

struct BinaryWeights {
  std::string signs;  // a bit per weight in the tensor's order, from the lowest of the first byte: 1 is negative
  std::vector<float> scales;  // the magnitude of each output's weights
};

// Of a weight that check_binary() took.
BinaryWeights pack_binary(const Tensor& weight);
// kData naming `label` if a bit after the last weight is set, or a scale is not at least 0. `signs` has as many bytes
// as the weights of this shape take.
Tensor unpack_binary(std::string_view signs, const Tensor& scales, const std::vector<int64_t>& shape,
                     std::string_view label);

}  // namespace onetap
