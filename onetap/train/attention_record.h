// What the attention of a network looks like now, and how far its taps agree with those of the epoch before.
#pragma once

#include "onetap/journal/attention_log.h"
#include "onetap/nn/graph_module.h"
#include "onetap/nn/tensor_file.h"

namespace onetap {

class AttentionRecord {
 public:
  // Describes every layer that chooses positions at its present temperature and remembers its taps for the next call.
  AttentionLine take(const nn::GraphModule& module);

  // The taps of the last call, for a checkpoint: a resumed run compares with the same ones.
  nn::NamedTensors state() const;
  void restore(const SafetensorsFile& file);

 private:
  std::vector<std::pair<std::string, torch::Tensor>> last_;  // by layer: [groups of outputs, in, taps], int16
};

}  // namespace onetap
