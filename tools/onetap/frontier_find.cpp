#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/find_runs.h"
#include "tools/onetap/frontier_freeze.h"
#include "tools/onetap/frontier_points.h"

#include <set>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

class Finder {
 public:
  explicit Finder(const fs::path& out) : out_(place(out)) {}

  // False if there is nothing in it.
  bool add(const fs::path& argument) {
    const size_t before = found_.size() + twice_;
    std::error_code ignored;
    if (fs::is_directory(argument, ignored)) {
      search(argument, kRunDepth);
    } else if (looks_like_tap(argument)) {
      take(argument);
    }
    return found_.size() + twice_ > before;
  }

  std::vector<fs::path> found() const { return found_; }
  size_t twice() const { return twice_; }

 private:
  static fs::path place(const fs::path& path) {
    std::error_code error;
    fs::path canonical = fs::weakly_canonical(path, error);
    return error ? fs::absolute(path) : canonical;
  }

  // Of an earlier call.
  static bool has_results(const fs::path& directory) {
    std::error_code ignored;
    return fs::exists(directory / "frontier.json", ignored);
  }

  void take(fs::path path) {
    if (path.filename() == "model.tap" && RunFiles(path.parent_path()).holds_run()) path = path.parent_path();
    if (known_.insert(place(path)).second) {
      found_.push_back(path);
    } else {
      ++twice_;
    }
  }

  void take_run(const fs::path& directory) {
    take(directory);
    std::error_code ignored;
    if (const fs::path int8 = RunFiles(directory).int8_model(); fs::exists(int8, ignored)) take(int8);
  }

  void search(const fs::path& directory, int depth) {
    if (RunFiles(directory).holds_run()) return take_run(directory);
    if (depth == 0) return;
    const bool is_frontier = has_results(directory);
    for (const fs::path& path : sorted_entries(directory)) {
      const bool is_hidden = path.filename().string().front() == '.';
      // What earlier calls froze into their output lies beside its run.
      if (is_hidden || place(path) == out_ || has_results(path)) continue;
      if (is_frontier && path.filename() == kFrozenRuns) continue;
      std::error_code ignored;
      if (fs::is_directory(path, ignored)) {
        search(path, depth - 1);
      } else if (path.extension() == ".tap") {
        take(path);  // what is damaged is told when it is opened
      }
    }
  }

  const fs::path out_;
  std::set<fs::path> known_;
  std::vector<fs::path> found_;
  size_t twice_ = 0;
};

}  // namespace

std::vector<fs::path> find_networks(const FrontierOptions& options) {
  Finder finder(options.out);
  std::vector<std::string> empty;
  for (const std::string& argument : options.arguments) {
    if (!finder.add(argument)) empty.push_back(argument);
  }
  if (finder.found().empty()) {
    fail_data("[frontier] expected runs, .tap files or directories that contain some, got none in {}",
              join(options.arguments, ", "));
  }
  for (const std::string& argument : empty) {
    console().warn(
        fmt::format("[frontier] expected a run, a .tap file or a directory that contains some, got {}", argument));
  }
  if (finder.twice() > 0)
    console().note(fmt::format("{} of the networks are named twice and used once", finder.twice()));
  return finder.found();
}

}  // namespace onetap::tool
