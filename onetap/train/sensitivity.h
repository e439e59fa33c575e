// What each layer's hardening costs by itself.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/train/evaluate.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

struct Sensitivity {
  struct Layer {
    std::string name;
    Score alone;  // this layer hard, all others soft
  };
  Score soft;  // every layer soft
  Score hard;  // every layer hard
  std::vector<Layer> layers;
  int64_t images = 0;
};

struct SensitivityOptions {
  StreamOptions stream;
  torch::Device device = torch::kCPU;
  // Called after every batch; returning false stops early.
  std::function<bool(int64_t images)> progress;
};

// One pass over the test set. Nothing if `progress` stopped it; NotFinite as evaluate(). The module is left in training
// mode and soft.
std::optional<Sensitivity> measure_sensitivity(nn::GraphModule& module, const Dataset& test,
                                               const SensitivityOptions& options);

}  // namespace onetap
