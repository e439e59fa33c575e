// The table of ops: spelling, arity and attributes. The text form, shape inference and the docs read it.
#pragma once

#include "onetap/graph/graph.h"

#include <vector>

namespace onetap {

// kMethod stands for `method` and the keys of the method, kTaps for those of a frozen layer.
enum class Attribute {
  kOut,
  kKernel,
  kStride,
  kPadding,
  kDilation,
  kGroups,
  kBias,
  kCounts,
  kSides,
  kFill,
  kEpsilon,
  kTaps,
  kMethod
};

struct OpInfo {
  Op op;
  const char* name;
  int min_inputs;
  int max_inputs;
  std::vector<Attribute> attributes;
  const char* summary;

  bool has(Attribute attribute) const;
};

const std::vector<OpInfo>& op_table();
const OpInfo& op_info(Op op);
const OpInfo* find_op(std::string_view name);

// What a pad puts around the image.
float pad_value(const Node& node);

// Elementwise functions of one input: the shape stays, channels stay apart.
bool is_activation(Op op);

// A node of this op with every attribute at its default.
Node default_node(Op op);

// The shape the node would produce from inputs of these shapes; kUsage if the attributes and shapes do not
// fit, with the node's name, what was expected and what came.
Shape infer_shape(const Node& node, const std::vector<Shape>& inputs);

}  // namespace onetap
