// Runs that have no frozen file yet, for `onetap frontier`.
#pragma once

#include "onetap/journal/run_files.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace onetap::tool {

constexpr const char* kFrozenRuns = "models";  // in the frontier's directory

struct FreezeRequest {
  RunFiles run{""};
  std::string name;             // of the point
  std::string data;             // that the frozen file is checked on
  std::optional<int64_t> step;  // of the run's last test
  std::filesystem::path out;    // the frontier's directory
  std::string program;          // instead of this one
  int64_t memory_limit = 0;     // bytes that the network may take; 0: as freeze does
};

struct FrozenRun {
  std::filesystem::path file;  // OUT/models/NAME-MARK.tap; the mark tells runs apart whose names read alike
  int interrupted_by = 0;      // by this signal, or 0
};

// By `onetap freeze`, as a process of its own. A file that an earlier call left is used again if it is of the run's
// last step and younger than its last checkpoint. Throws what says why there is none: an unfinished run, a build that
// cannot train, a check that failed.
FrozenRun freeze_for_frontier(const FreezeRequest& request);

}  // namespace onetap::tool
