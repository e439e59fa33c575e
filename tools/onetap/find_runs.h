// Runs below a folder: of a sweep, of `reproduce`, or of a folder of one's own.
#pragma once

#include <filesystem>
#include <vector>

namespace onetap::tool {

// How far below a folder runs lie: DIR/SWEEP/RUN, REPRODUCED/runs/RUN.
constexpr int kRunDepth = 3;

// What a folder holds, in the order of names; a warning if it cannot be read.
std::vector<std::filesystem::path> sorted_entries(const std::filesystem::path& directory);

// The folder itself if it is a run, else the runs in it and below, in the order of their names. Other files are passed
// over.
std::vector<std::filesystem::path> runs_below(const std::filesystem::path& directory, int depth = kRunDepth);

}  // namespace onetap::tool
