// The files of a run directory, for whoever looks at one. Takes no lock and needs no LibTorch.
//
//   config.toml              the resolved recipe, and where it came from
//   network.txt              the network, methods included
//   SHA256SUMS               checksums of both, see run_sums.h
//   metrics.jsonl            one object a line, see metrics.h
//   attention.jsonl          what the attention looked like after each epoch, see attention_log.h
//   classes.json             what `onetap eval --per-class` found, see class_scores.h
//   events.out.tfevents.*    for TensorBoard
//   checkpoints/             see onetap/train/checkpoint.h
//   model.tap, report.html   what `onetap freeze` and `onetap report` make of it
//   model-int8.tap           what `onetap quantize` makes of model.tap, if it is put there
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/journal/run_state.h"
#include "onetap/recipe/recipe.h"

#include <filesystem>
#include <optional>

namespace onetap {

struct RunFiles {
  explicit RunFiles(std::filesystem::path directory) : root(std::move(directory)) {}

  std::filesystem::path root;
  std::filesystem::path config() const { return root / "config.toml"; }
  std::filesystem::path network() const { return root / "network.txt"; }
  std::filesystem::path sums() const { return root / "SHA256SUMS"; }
  std::filesystem::path metrics() const { return root / "metrics.jsonl"; }
  std::filesystem::path attention() const { return root / "attention.jsonl"; }
  std::filesystem::path classes() const { return root / "classes.json"; }
  std::filesystem::path checkpoints() const { return root / "checkpoints"; }
  std::filesystem::path model() const { return root / "model.tap"; }
  std::filesystem::path int8_model() const { return root / "model-int8.tap"; }

  bool holds_run() const;
  // kData if this is not a run directory, or if the file is not whole or not the one that was written.
  Recipe read_config() const;
  Graph read_graph() const;
  // True once all epochs are done, tested and in the newest checkpoint. False as well for what cannot be read.
  bool finished() const;
  // Of the newest checkpoint; nothing if it cannot be read.
  std::optional<RunState> last_state() const;
  // Whether `patience` ended the run before its last epoch, and its tests are done. False as well for what cannot be
  // read.
  bool ended_early() const;
};

}  // namespace onetap
