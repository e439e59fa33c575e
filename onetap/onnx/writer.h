// A frozen network as an ONNX model: float32, plain operators; an int8 network with QuantizeLinear and
// DequantizeLinear around them. docs/onnx.md has what becomes of each op.
#pragma once

#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <string>

namespace onetap {

constexpr int64_t kFirstOnnxOpset = 13, kLastOnnxOpset = 20;  // that are written

// How a tap convolution whose outputs all read the same positions is written; others are kDense always.
enum class OnnxForm {
  kDense,  // one Conv, zeros where weights were pruned
  kShift,  // a depthwise Conv that moves every channel, then a 1x1 Conv
};

struct OnnxOptions {
  int64_t opset = kFirstOnnxOpset;
  int64_t batch = 0;  // images of the input; 0: any number
  OnnxForm form = OnnxForm::kDense;
};

// The serialized ModelProto. A node's value keeps the node's name, the input's and the output's included; parameters
// are initialisers NAME.weight and NAME.bias. The metadata are those of the .tap file: mean, sd, classes, about.*.
// kUsage if it would pass 2 GiB, which protobuf cannot read, or if kShift is asked for and no layer has such a form.
std::string onnx_model(const TapNet& net, const OnnxOptions& options = {});

}  // namespace onetap
