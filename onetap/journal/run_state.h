// Where a run stands: the part of a checkpoint that is not tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace onetap {

// Everything beside tensors that a run must remember; random numbers need no memory (see random.h).
struct RunState {
  int64_t step = 0;          // optimiser steps done
  bool epoch_logged = true;  // at the end of an epoch: its test and metrics are done too
  double loss_sum = 0;       // of the present epoch so far
  int64_t right = 0;
  int64_t seen = 0;
  double temperature = 1;  // of the soft network at this step
  double wall_s = 0;
  uint64_t metrics_bytes = 0;    // of metrics.jsonl that belong to this state
  uint64_t attention_bytes = 0;  // likewise of attention.jsonl
  double best_accuracy = -1;
  int64_t best_step = -1;
  bool ended = false;   // before the last epoch, because the accuracy no longer rose
  std::string teacher;  // SHA-256 of what the run learns from; empty: no teacher
  // CRC-32C of the checkpoint's other files, by name. None in checkpoints of older versions.
  std::map<std::string, uint32_t> checksums;

  std::string json() const;
  // kData naming `label` if the text is no state, or not the one that was written.
  static RunState parse(const std::string& text, const std::string& label);
};

}  // namespace onetap
