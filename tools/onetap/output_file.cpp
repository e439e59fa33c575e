#include "tools/onetap/output_file.h"

#include "onetap/base/fail.h"
#include "onetap/journal/run_files.h"

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <system_error>
#include <unistd.h>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

void check_writable(const char* verb, const fs::path& folder, const fs::path& out) {
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return;
  fail_usage("[{}] expected a folder that can be written to, got {}: {} ({})", verb, folder.string(),
             std::strerror(errno), out.string());
}

// What training writes into a run directory. model.tap, report.html and files of other names are made of a run.
bool is_record(const fs::path& in_run) {
  static const std::set<std::string> names = {"config.toml",     "network.txt",  "SHA256SUMS", "metrics.jsonl",
                                              "attention.jsonl", "classes.json", ".lock"};
  const std::string first = in_run.begin()->string();
  return first == "checkpoints" || names.count(first) > 0 || first.rfind("events.out.tfevents", 0) == 0;
}

// A file written in place of a record would damage the run, and be damaged by its next training.
void refuse_records(const char* verb, const fs::path& folder, const fs::path& out) {
  constexpr int kDeepest = 3;  // RUN/checkpoints/STEP/FILE
  std::error_code error;
  const fs::path file = fs::canonical(folder, error) / out.filename();
  fs::path run = file;
  for (int depth = 0; depth < kDeepest && !error; ++depth) {
    run = run.parent_path();
    const RunFiles files(run);
    // Other projects have a config.toml too.
    if (!files.holds_run() || !fs::exists(files.network(), error) || !is_record(file.lexically_relative(run))) continue;
    fail_usage("[{}] expected another file to write than the records of a run, got {}", verb, out.string());
  }
}

}  // namespace

void check_output_file(const char* verb, const fs::path& out) {
  if (out.empty()) fail_usage("[{}] expected a file to write, got an empty name", verb);
  std::error_code ignored;
  const fs::file_status status = fs::status(out, ignored);
  if (fs::is_directory(status) || !out.has_filename()) {
    fail_usage("[{}] expected a file to write, got the folder {}", verb, out.string());
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    fail_usage("[{}] expected a file to write, got a device, FIFO or socket: {}", verb, out.string());
  }
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, ignored)) {
    fail_usage("[{}] expected a file in a folder that exists, got no folder {} ({})", verb, folder.string(),
               out.string());
  }
  check_writable(verb, folder, out);
  refuse_records(verb, folder, out);
}

void check_output_file(const char* verb, const fs::path& source, const fs::path& out) {
  check_output_file(verb, out);
  std::error_code ignored;
  if (!fs::equivalent(source, out, ignored)) return;
  fail_usage("[{}] expected another file to write than the one that is read, got {} for both", verb, out.string());
}

void check_output_place(const char* verb, const fs::path& out) {
  if (out.empty()) fail_usage("[{}] expected a folder to write to, got an empty name", verb);
  std::error_code ignored;
  const fs::file_status status = fs::status(out, ignored);
  if (fs::is_directory(status)) return check_writable(verb, out, out);
  if (fs::exists(status)) fail_usage("[{}] expected a folder to write to, got a file: {}", verb, out.string());
  if (fs::is_symlink(fs::symlink_status(out, ignored))) {
    fail_usage("[{}] expected a folder to write to, got a link to nothing: {}", verb, out.string());
  }
  fs::path around = fs::absolute(out).lexically_normal();
  while (!fs::exists(around, ignored) && around.has_relative_path()) around = around.parent_path();
  if (!fs::is_directory(around, ignored)) {
    fail_usage("[{}] expected a folder in folders, got the file {} ({})", verb, around.string(), out.string());
  }
  check_writable(verb, around, out);
}

void check_output_folder(const char* verb, const fs::path& out) {
  check_output_place(verb, out);
  std::error_code error;
  if (fs::exists(out, error) && (!fs::is_empty(out, error) || error)) {
    fail_usage("[{}] expected an empty folder, or a new one, got {}: remove it first", verb, out.string());
  }
}

CLI::Validator some_name() {
  return CLI::Validator(
      [](std::string& name) { return name.empty() ? std::string("expected a name, got an empty one") : std::string(); },
      "");
}

}  // namespace onetap::tool
