// Checkpoints: directories that are written aside, synced and renamed, so that each is whole or not there.
//
//   checkpoints/step-000000391/model.safetensors      the network: parameters and buffers, averaged where the recipe
//   has `ema`
//                                                     (with `quantize` also `ranges`, see quantized_training.h)
//                              training.safetensors   with `ema`: those that training goes on from
//                              optimizer.safetensors  momentum, or the averages of AdamW
//                              taps.safetensors       taps at the last tested epoch, see attention_record.h
//                              state.json             where the run stands, and the checksums of the files above
//   checkpoints/last, checkpoints/best                links to the newest and to the best one
#pragma once

#include "onetap/base/error.h"
#include "onetap/journal/run_state.h"
#include "onetap/nn/graph_module.h"
#include "onetap/train/attention_record.h"
#include "onetap/train/optimizer.h"
#include "onetap/train/weight_average.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

using CheckpointNotice = std::function<void(const std::string&)>;

struct Checkpoint {
  std::filesystem::path path;
  RunState state;
};

// A checkpoint whose files are not what was written, or whose values are not finite: the one before it may be good. Any
// other error (a file that cannot be read, tensors of another network) says nothing against it.
class DamagedCheckpoint : public Error {
 public:
  explicit DamagedCheckpoint(const std::string& message) : Error(ErrorKind::kData, message) {}
};

// Which weights of a checkpoint to read, where the run has a moving average of them.
enum class KeptWeights {
  kAveraged,
  kTrained,  // those that training goes on from; of a run without an average its only ones
};

// What a search among checkpoints came to.
struct FoundCheckpoint {
  std::optional<Checkpoint> checkpoint;  // none: there is none, or all are damaged
  bool passed_over = false;              // damaged ones, newer than it
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Complete checkpoints, newest first; unreadable ones are reported to `notice` and left out.
  std::vector<Checkpoint> list(const CheckpointNotice& notice = {}) const;
  // Renames those of later steps than `used` to damaged-...: they were passed over, and are kept for a person to see.
  // Null: all of them.
  void keep_aside_after(const Checkpoint* used) const;

  // The one that "last", "best" or a step number names; kData if there is none.
  Checkpoint find(const std::string& which, const CheckpointNotice& notice = {}) const;

  // Calls `load` with the newest checkpoint, and with the one before for as long as that throws DamagedCheckpoint.
  // `notice` hears of each that is passed over.
  FoundCheckpoint load_newest(const std::function<void(const Checkpoint&)>& load, const CheckpointNotice& notice) const;

  // Finds it and reads the network's tensors. Where the last one is damaged, the newest good one before it is taken,
  // and `notice` hears both; kData if there is none, or if one that was asked for by name is damaged.
  Checkpoint open(const std::string& which, nn::GraphModule& module, const CheckpointNotice& notice,
                  KeptWeights weights = KeptWeights::kAveraged) const;

  // The newest one, where a copy of the run has lost the link to it.
  void point_last_at(const Checkpoint& newest) const;

  // Writes one, points the links at it, and removes all but the newest `keep` and the best.
  std::filesystem::path write(const RunState& state, const nn::GraphModule& module, const Optimizer& optimizer,
                              const AttentionRecord& attention, const WeightAverage& average, int64_t keep) const;

  // Reads the network's tensors. kData if they do not fit the module, are not those that were written, or have values
  // that are not finite.
  static void load(const Checkpoint& checkpoint, nn::GraphModule& module, KeptWeights weights = KeptWeights::kAveraged);
  // The file that has them.
  static std::filesystem::path weights_file(const Checkpoint& checkpoint, KeptWeights weights = KeptWeights::kAveraged);
  // All of them: what a run needs to go on.
  static void load(const Checkpoint& checkpoint, nn::GraphModule& module, Optimizer& optimizer,
                   AttentionRecord& attention, WeightAverage& average);

  const std::filesystem::path& directory() const { return directory_; }

 private:
  void prune(const RunState& state, int64_t keep) const;

  std::filesystem::path directory_;
};

// The largest magnitudes of values that a run for int8 (`quantize`) has kept, by their names in the frozen network;
// empty for other runs. kData if they are not those of this network.
std::map<std::string, float> read_ranges(const Checkpoint& checkpoint, const Graph& graph,
                                         KeptWeights weights = KeptWeights::kAveraged);

}  // namespace onetap
