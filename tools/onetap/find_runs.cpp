#include "tools/onetap/find_runs.h"

#include "onetap/journal/run_files.h"
#include "tools/onetap/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace fs = std::filesystem;

namespace onetap::tool {

std::vector<fs::path> sorted_entries(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> inside;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    inside.push_back(at->path());
  }
  if (error) console().warn(fmt::format("cannot read {}: {}", directory.string(), error.message()));
  std::sort(inside.begin(), inside.end());
  return inside;
}

std::vector<fs::path> runs_below(const fs::path& directory, int depth) {
  if (RunFiles(directory).holds_run()) return {directory};
  std::vector<fs::path> runs;
  std::error_code ignored;
  if (depth == 0 || !fs::is_directory(directory, ignored)) return runs;
  for (const fs::path& path : sorted_entries(directory)) {
    const bool is_hidden = path.filename().string().front() == '.';
    if (is_hidden || !fs::is_directory(path, ignored)) continue;
    const std::vector<fs::path> below = runs_below(path, depth - 1);
    runs.insert(runs.end(), below.begin(), below.end());
  }
  return runs;
}

}  // namespace onetap::tool
