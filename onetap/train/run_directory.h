// Writing the directory of one run (see onetap/journal/run_files.h): one process alone does.
#pragma once

#include "onetap/base/file.h"
#include "onetap/graph/graph.h"
#include "onetap/journal/run_files.h"
#include "onetap/recipe/recipe.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace onetap {

// Facts worth keeping beside the recipe: version, library, host, command line.
using Provenance = std::map<std::string, std::string>;

// A run to write; holds the lock while it lives.
class RunDirectory {
 public:
  // Creates the directory. kUsage if it already holds a run or other files; kFailure if it cannot be written or
  // another process holds it.
  static RunDirectory create(const std::filesystem::path& root, const Recipe& resolved, const Graph& graph,
                             const Provenance& provenance);
  // Takes up a run and removes what a killed writer left half-done. kData if there is none.
  static RunDirectory resume(const std::filesystem::path& root);

  // Replaces the recipe by one that differs in `extend` and `extend_lr`, and adds the command to the provenance (as
  // extended_1, extended_2, ...). A process that is killed on the way leaves a run with one of the two.
  void extend(const Recipe& extended, const std::string& command) const;

  const RunFiles& files() const { return files_; }

 private:
  explicit RunDirectory(const std::filesystem::path& root);

  RunFiles files_;
  std::unique_ptr<DirectoryLock> lock_;
};

}  // namespace onetap
