#include "tools/onetap/frontier_freeze.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/sha256.h"
#include "onetap/tap/tap_file.h"
#include "onetap/tap/test_fact.h"
#include "tools/onetap/console.h"
#include "tools/onetap/eval.h"
#include "tools/onetap/last_words.h"
#include "tools/onetap/processes.h"
#include "tools/onetap/sweep_plan.h"
#include "tools/onetap/verbs.h"

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

bool is_of_run(const fs::path& file, const FreezeRequest& request) {
  std::error_code error;
  const auto made = fs::last_write_time(file, error);
  if (error || !request.step) return false;
  const auto trained = fs::last_write_time(request.run.metrics(), error);
  if (error || made < trained) return false;
  try {
    return frozen_step(read_tap(file)) == request.step;
  } catch (const Error&) {
    return false;  // damaged: made anew
  }
}

// The names of points leave out what the arguments of one call have in common; two calls may mean different runs.
std::string file_name(const FreezeRequest& request) {
  constexpr size_t kMark = 8;
  std::error_code error;
  const fs::path place = fs::weakly_canonical(request.run.root, error);
  Sha256 hash;
  const std::string path = (error ? request.run.root : place).string();
  hash.update(path.data(), path.size());
  return fmt::format("{}-{}.tap", safe_name(request.name), hash.hex().substr(0, kMark));
}

// kUsage with advice if this program cannot.
void check_can_freeze(const FreezeRequest& request) {
  if (!request.program.empty()) return;
  try {
    require_training("frontier");
  } catch (const Error& problem) {
    fail_usage("{}; there is no model.tap: 'onetap freeze {}' of a build with LibTorch creates it", problem.what(),
               request.run.root.string());
  }
}

}  // namespace

FrozenRun freeze_for_frontier(const FreezeRequest& request) {
  const fs::path file = request.out / kFrozenRuns / file_name(request);
  if (is_of_run(file, request)) return {file};
  if (!request.run.finished()) {
    fail_data("[frontier] expected a finished run or its model.tap, got neither ({})", request.run.root.string());
  }
  check_can_freeze(request);
  make_directories(file.parent_path());
  fs::path log = file;
  log.replace_extension(".log");
  Command command{request.program, {"freeze", request.run.root.string(), "--data", request.data, "-o", file.string()}};
  if (request.memory_limit > 0) {
    command.arguments.insert(command.arguments.end(), {"--memory", std::to_string(request.memory_limit)});
  }
  command.out = command.err = Sink::kLog;
  command.log = log;
  Processes processes;
  processes.start(command);
  for (;;) {
    console().progress(fmt::format("freezing {}", request.name));
    const Processes::Event event = processes.wait(std::chrono::milliseconds(500));
    if (event.kind != Processes::Event::Kind::kEnded) continue;
    console().clear_progress();
    if (processes.interrupted_by() != 0) return {file, processes.interrupted_by()};
    if (event.ending.failed()) {
      fail("[frontier] freeze {}: {} ({})", event.ending.text(), last_words(log), log.string());
    }
    return {file};
  }
}

}  // namespace onetap::tool
