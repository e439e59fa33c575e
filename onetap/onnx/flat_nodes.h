// The nodes of a model in their order, calls of its own functions replaced by what the functions hold.
#pragma once

#include "onetap/onnx/model_source.h"

#include <cstdint>
#include <vector>

namespace onetap {

struct FlatNode {
  onnx::Node node;
  int64_t opset = 0;  // of ONNX's own operators where the node stands
};

// kData for an opset that is not one of 9 to 20, functions that call themselves, and more nodes than a network has.
std::vector<FlatNode> flat_nodes(const ModelSource& source);

// Whether a domain is that of ONNX's own operators.
bool is_onnx_domain(const std::string& domain);

}  // namespace onetap
