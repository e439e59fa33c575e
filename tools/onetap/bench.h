// What a benchmark can be asked to compare with.
#pragma once

#include "onetap/runtime/session.h"
#include "onetap/tap/tap_net.h"
#include "tools/onetap/calibration_images.h"
#include "tools/onetap/missing_peer.h"
#include "tools/onetap/time_in_turns.h"

#include <memory>
#include <string>
#include <vector>

namespace onetap::tool {

struct BenchSetting {
  int64_t threads = 1;
  int64_t batch = 1;
  std::vector<float> images;  // of the batch
};

// Python's onnxruntime on the network as ONNX, in a process of its own. MissingPeer if there is none. An int8 network
// goes there as floats and is quantized by onnxruntime itself: QDQ, static, weights per output channel, calibrated on
// the images, which a network of floats needs none of.
std::unique_ptr<Benchmark> onnxruntime_benchmark(const TapNet& net, const BenchSetting& setting,
                                                 const PeerImages& images, std::string& version);

// LibTorch on the network with every tap. Of the training module.
std::unique_ptr<Benchmark> libtorch_benchmark(const TapNet& net, const BenchSetting& setting, std::string& version);

}  // namespace onetap::tool
