// The int8 network that a quantised model is: bytes, scales and positions as `onetap quantize` made them.
#pragma once

#include "onetap/onnx/converter.h"

#include <map>
#include <memory>
#include <string>

namespace onetap {

// What a model says of bytes, by the names of nodes.
struct ImportedBytes {
  struct Layer {
    std::shared_ptr<const OnnxBytes> weight, bias;  // the bias may be null
    std::string where;                              // the operator, for messages
  };

  std::map<std::string, OnnxRounding> roundings;
  std::map<std::string, Layer> layers;
};

// Of a network whose graph, tensors and metadata are read. kData with the operator and what differs if the model is not
// quantised as our own exports are.
TapNet int8_net(const ImportedNet& net, const ImportedBytes& bytes, const std::string& label);

}  // namespace onetap
