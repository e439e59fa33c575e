// Proof that nothing was lost between training and the file: every stage answers the same test images.
#pragma once

#include "onetap/data/score.h"
#include "onetap/nn/graph_module.h"
#include "onetap/tap/tap_net.h"
#include "onetap/train/loader.h"

#include <functional>
#include <string>
#include <vector>

namespace onetap {

struct Stage {
  std::string name;  // soft, hard (or dense), folded, file
  Predictions said;
  OutputDifference from_before;  // to the stage before; zero for the first
};

struct VerifyOptions {
  StreamOptions stream;
  int64_t threads = 1;
  std::function<void(const std::string& stage, int64_t images)> progress;
};

// soft and hard by LibTorch on the CPU (dense alone for a network without Shift Attention Layers), `folded` (the net in
// memory) and `file` (the one read back) by the runtime that will run the file. The module is left in training mode and
// soft.
std::vector<Stage> verify_stages(nn::GraphModule& module, const TapNet& folded, const TapNet& file, const Dataset& test,
                                 const VerifyOptions& options);

// Relative difference of outputs that rounding explains.
double rounding_tolerance(WeightType type);

// kCheck naming the stage if folding or the file changed the outputs by more than rounding.
void check_stages(const std::vector<Stage>& stages, WeightType type);

}  // namespace onetap
