// A frozen network as an ONNX model: opset 13, float32, any batch size. docs/onnx.md has what becomes of each op.
#pragma once

#include "onetap/tap/tap_net.h"

#include <string>

namespace onetap {

// The serialized ModelProto. A node's value keeps the node's name, the input's and the output's included; parameters
// are initialisers NAME.weight and NAME.bias, kernels dense with zeros where weights were pruned. The metadata are
// those of the .tap file: mean, sd, classes, about.*. kUsage if it would pass 2 GiB, which protobuf cannot read.
std::string onnx_model(const TapNet& net);

}  // namespace onetap
