// Accuracy and loss of a network on a test set, soft and hard.
#pragma once

#include "onetap/batches/batch_stream.h"
#include "onetap/fused/engine.h"
#include "onetap/nn/graph_module.h"
#include "onetap/ranks/rank_group.h"

#include <functional>
#include <optional>

namespace onetap {

struct Score {
  double accuracy = 0;  // share of images classified right, 0..1
  double loss = 0;      // mean cross-entropy
};

struct EvalResult {
  Score soft;  // at the present temperature
  Score hard;  // equal to soft for a network without a soft form
  int64_t images = 0;
};

struct EvalOptions {
  StreamOptions stream;
  nn::AttentionMode hard_mode = nn::AttentionMode::kHard;
  torch::Device device = torch::kCPU;
  // Called after every batch with the images done; returning false stops early, as stream.stopped does in a wait for
  // data.
  std::function<bool(int64_t)> progress;
  // Several processes share the test, each with its part of the stream; all get the result of the whole, or nothing if
  // one was stopped.
  RankGroup* ranks = nullptr;
  // Called with the outputs and labels of every batch: of the hard network, or of the only form.
  std::function<void(const torch::Tensor& outputs, const torch::Tensor& labels)> collect;
};

// Nothing if `progress` stopped it; NotFinite if an output or the loss is not finite. The module is left in training
// mode and soft.
std::optional<EvalResult> evaluate(nn::GraphModule& module, const Dataset& data, const EvalOptions& options);

// The same on the engine's test set.
std::optional<EvalResult> evaluate(nn::GraphModule& module, fused::Engine& engine, const EvalOptions& options);

}  // namespace onetap
