// Checks that nothing was lost between training and the file: every stage classifies the same test images.
#pragma once

#include "onetap/batches/batch_stream.h"
#include "onetap/data/score.h"
#include "onetap/nn/graph_module.h"
#include "onetap/tap/tap_net.h"

#include <functional>
#include <string>
#include <vector>

namespace onetap {

struct Stage {
  std::string name;  // soft, hard (or dense), recalibrated, folded, dropped, file; given: a file that is there
  Predictions predictions;
  OutputDifference from_before;  // to the stage before; zero for the first
};

struct VerifyOptions {
  StreamOptions stream;
  int64_t threads = 1;
  int64_t memory_limit = 0;  // of the runtime, as ModelOptions has it
  std::function<void(const std::string& stage, int64_t images)> progress;
};

// Evaluates one stage after the other. Modules run in LibTorch on the CPU and are left in training mode and soft; nets
// run in the runtime that will run the file.
class StageCheck {
 public:
  StageCheck(const Dataset& test, VerifyOptions options) : test_(test), options_(std::move(options)) {}

  // soft and hard; dense alone for a network without a soft form.
  void trained(nn::GraphModule& module);
  // The hard (or dense) network again: without weights that were dropped, with new statistics.
  void dropped(nn::GraphModule& module) { hardened("dropped", module); }
  void recalibrated(nn::GraphModule& module) { hardened("recalibrated", module); }
  void frozen(const char* name, const TapNet& net);

  const std::vector<Stage>& stages() const { return stages_; }

 private:
  void hardened(const char* name, nn::GraphModule& module);
  void add(const char* name, Predictions predictions);

  const Dataset& test_;
  const VerifyOptions options_;
  std::vector<Stage> stages_;
};

// Relative difference of outputs that rounding explains.
double rounding_tolerance(WeightType type);

// kCheck naming the stage if folding or the file changed the outputs by more than rounding, or if dropping changed them
// at all although `only_zeros` were dropped.
void check_stages(const std::vector<Stage>& stages, WeightType type, bool only_zeros = true);

}  // namespace onetap
