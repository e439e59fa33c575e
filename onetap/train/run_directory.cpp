#include "onetap/train/run_directory.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/graph/text.h"
#include "onetap/journal/run_sums.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <unistd.h>

namespace fs = std::filesystem;

namespace onetap {
namespace {

// What a writer killed during create() may have left: such a directory counts as new.
bool is_leftover(const std::string& name) {
  const auto ends_with = [&](std::string_view end) {
    return name.size() >= end.size() && std::string_view(name).substr(name.size() - end.size()) == end;
  };
  return name == ".lock" || name == "network.txt" || name == "SHA256SUMS" || ends_with(".tmp");
}

void remove_temporaries(const fs::path& root) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    std::error_code ignored;
    if (entry.path().extension() == ".tmp") fs::remove(entry.path(), ignored);
  }
}

// kUsage unless a new run may be made here.
void check_free(const fs::path& root) {
  std::error_code error;
  if (fs::exists(root, error) && !fs::is_directory(root, error)) {
    fail_usage("[run] expected a directory for the run, got a file ({})", root.string());
  }
  if (RunFiles(root).holds_run()) {
    fail_usage("[run] {} already holds a run: --resume resumes it, another --out starts a new one", root.string());
  }
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_leftover(name)) {
      fail_usage("[run] expected a new or empty directory, got {} with '{}' in it", root.string(), name);
    }
  }
}

constexpr const char* kProvenance = "\n[provenance]\n";

std::string provenance_text(const Provenance& provenance) {
  std::string text = kProvenance;
  for (const auto& [key, value] : provenance) text += fmt::format("{} = {}\n", key, toml_string(value));
  return text;
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& root) : files_(root), lock_(std::make_unique<DirectoryLock>(root)) {}

RunDirectory RunDirectory::create(const fs::path& root, const Recipe& resolved, const Graph& graph,
                                  const Provenance& provenance) {
  check_free(root);
  std::error_code error;
  const bool is_new = !fs::exists(root, error);
  try {
    make_directories(root);
    if (::access(root.c_str(), W_OK) != 0) fail("[file] cannot write in {}: {}", root.string(), std::strerror(errno));
  } catch (const Error& problem) {
    fail_usage("{} (expected a place for the run's files)", problem.what());
  }
  RunDirectory run(root);
  check_free(root);  // once more under the lock: another process may have come and gone in between
  try {
    remove_temporaries(root);
    const std::string network = network_text(graph);
    const std::string config = recipe_text(resolved) + provenance_text(provenance);
    const RunFiles& files = run.files_;
    write_file_atomic(files.network(), network);
    write_file_atomic(files.sums(), sums_text({{files.config().filename().string(), config},
                                               {files.network().filename().string(), network}}));
    // Last: with config.toml in place the directory is a run.
    write_file_atomic(files.config(), config);
  } catch (...) {
    if (is_new) fs::remove_all(root, error);
    throw;
  }
  return run;
}

void RunDirectory::extend(const Recipe& extended, const std::string& command) const {
  const std::string before = read_file(files_.config(), 1u << 20);
  const std::string network = read_file(files_.network());
  const size_t facts = before.find(kProvenance);
  std::string config = recipe_text(extended) + (facts == std::string::npos ? kProvenance : before.substr(facts));
  const Provenance known = recipe_provenance(before);
  int64_t times = 1;
  while (known.count(fmt::format("extended_{}", times)) > 0) ++times;
  if (config.back() != '\n') config += '\n';
  config += fmt::format("extended_{} = {}\n", times, toml_string(command));
  const std::string name = files_.config().filename().string();
  const std::string old_sum = sums_text({{name, before}});
  const std::string sums = sums_text({{name, config}, {files_.network().filename().string(), network}});
  write_file_atomic(files_.sums(), sums + old_sum);  // both are right until the file is replaced
  write_file_atomic(files_.config(), config);
  write_file_atomic(files_.sums(), sums);
}

RunDirectory RunDirectory::resume(const fs::path& root) {
  if (!RunFiles(root).holds_run())
    fail_data("[run] expected a run directory with config.toml, got {}", named_place(root));
  RunDirectory run(root);
  remove_temporaries(root);
  StagedDirectory::clean(run.files_.checkpoints());
  return run;
}

}  // namespace onetap
