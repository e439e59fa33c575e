// Frozen networks as ONNX models, in builds with protobuf.
#pragma once

#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <string>

namespace onetap::tool {

struct OnnxArguments {
  int64_t opset = 13;
  std::string batch = "symbolic";
  std::string form = "dense";
};

// MissingPeer in a build without protobuf.
std::string onnx_bytes(const TapNet& net, const OnnxArguments& arguments = {});

}  // namespace onetap::tool
