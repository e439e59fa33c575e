// Runs a network of floats and records how large its values are: what quantize_net() chooses scales from.
#pragma once

#include "onetap/quant/quantize.h"
#include "onetap/tap/tap_net.h"

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace onetap {

class Calibrator {
 public:
  // The network must outlive it. kUsage if the values of an image would take more than `memory_limit` bytes (0: those
  // of ONETAP_MEMORY, or 1 GiB).
  explicit Calibrator(const TapNet& net, int64_t memory_limit = 0);

  // Counts the values of one image; returns the network's outputs. Several threads may call it at once: what is
  // counted does not depend on their order.
  std::vector<float> run(const float* image);

  // What was counted so far.
  Calibration calibration() const;

 private:
  const TapNet& net_;
  const int64_t memory_limit_;
  const Graph graph_;  // of int8_form(), with the names of the network
  const ExecutionPlan plan_;
  std::unordered_map<std::string, size_t> value_of_;  // by the node whose result it is
  mutable std::mutex mutex_;
  Calibration counted_;
};

}  // namespace onetap
