// Checkpoints: directories that are written aside, synced and renamed, so that each is whole or not there.
//
//   checkpoints/step-000000391/model.safetensors      the network: parameters and buffers, averaged where the recipe
//   has `ema`
//                              training.safetensors   with `ema`: those that training goes on from
//                              optimizer.safetensors  momentum
//                              taps.safetensors       taps at the last tested epoch, see attention_record.h
//                              state.json             where the run stands
//   checkpoints/last, checkpoints/best                links to the newest and to the best one
#pragma once

#include "onetap/journal/run_state.h"
#include "onetap/nn/graph_module.h"
#include "onetap/train/attention_record.h"
#include "onetap/train/sgd.h"
#include "onetap/train/weight_average.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

struct Checkpoint {
  std::filesystem::path path;
  RunState state;
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Complete checkpoints, newest first; unreadable ones are reported to `notice` and left out.
  std::vector<Checkpoint> list(const std::function<void(const std::string&)>& notice = {}) const;

  // The one that "last", "best" or a step number names; kData if there is none.
  Checkpoint find(const std::string& which) const;

  // Writes one, points the links at it, and removes all but the newest `keep` and the best.
  std::filesystem::path write(const RunState& state, const nn::GraphModule& module, const Sgd& sgd,
                              const AttentionRecord& attention, const WeightAverage& average, int64_t keep) const;

  // Reads the network's tensors; kData if they do not fit the module.
  static void load(const Checkpoint& checkpoint, nn::GraphModule& module);
  // All of them: what a run needs to go on.
  static void load(const Checkpoint& checkpoint, nn::GraphModule& module, Sgd& sgd, AttentionRecord& attention,
                   WeightAverage& average);

  const std::filesystem::path& directory() const { return directory_; }

 private:
  void prune(const RunState& state, int64_t keep) const;

  std::filesystem::path directory_;
};

}  // namespace onetap
