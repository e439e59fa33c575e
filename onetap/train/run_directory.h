// The directory of one run: what it holds, and that one process alone writes it.
//
//   config.toml              the resolved recipe, and where it came from
//   network.txt              the network, methods included
//   metrics.jsonl            one object a line
//   events.out.tfevents.*    for TensorBoard
//   checkpoints/             see checkpoint.h
#pragma once

#include "onetap/base/file.h"
#include "onetap/graph/graph.h"
#include "onetap/recipe/recipe.h"
#include "onetap/train/checkpoint.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace onetap {

// Facts worth keeping beside the recipe: version, library, host, command line.
using Provenance = std::map<std::string, std::string>;

// A run to look at; takes no lock.
struct RunFiles {
  explicit RunFiles(std::filesystem::path directory) : root(std::move(directory)) {}

  std::filesystem::path root;
  std::filesystem::path config() const { return root / "config.toml"; }
  std::filesystem::path network() const { return root / "network.txt"; }
  std::filesystem::path metrics() const { return root / "metrics.jsonl"; }
  CheckpointFolder checkpoints() const { return CheckpointFolder(root / "checkpoints"); }

  bool holds_run() const;
  // kData if this is not a run directory.
  Recipe read_config() const;
  Graph read_graph() const;
};

// A run to write; holds the lock while it lives.
class RunDirectory {
 public:
  // Creates the directory. kUsage if it holds a run already or other files; kFailure if it cannot be written or
  // another process holds it.
  static RunDirectory create(const std::filesystem::path& root, const Recipe& resolved, const Graph& graph,
                             const Provenance& provenance);
  // Takes up a run and removes what a killed writer left half-done. kData if there is none.
  static RunDirectory resume(const std::filesystem::path& root);

  const RunFiles& files() const { return files_; }

 private:
  explicit RunDirectory(const std::filesystem::path& root);

  RunFiles files_;
  std::unique_ptr<DirectoryLock> lock_;
};

}  // namespace onetap
