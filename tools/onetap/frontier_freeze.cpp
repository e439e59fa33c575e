#include "tools/onetap/frontier_freeze.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/eval.h"
#include "tools/onetap/last_words.h"
#include "tools/onetap/processes.h"
#include "tools/onetap/sweep_plan.h"
#include "tools/onetap/verbs.h"

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

bool is_of_step(const fs::path& file, std::optional<int64_t> step) {
  try {
    return step && frozen_step(read_tap(file)) == step;
  } catch (const Error&) {
    return false;  // none, or damaged: made anew
  }
}

// kUsage with advice if this program cannot.
void check_can_freeze(const FreezeRequest& request) {
  if (!request.program.empty()) return;
  try {
    require_training("frontier");
  } catch (const Error& problem) {
    fail_usage("{}; there is no model.tap: 'onetap freeze {}' of a build with LibTorch makes it", problem.what(),
               request.run.root.string());
  }
}

}  // namespace

FrozenRun freeze_for_frontier(const FreezeRequest& request) {
  const fs::path file = request.out / "models" / (safe_name(request.name) + ".tap");
  if (is_of_step(file, request.step)) return {file};
  if (!request.run.finished()) {
    fail_data("[frontier] expected a finished run or its model.tap, got neither ({})", request.run.root.string());
  }
  check_can_freeze(request);
  make_directories(file.parent_path());
  fs::path log = file;
  log.replace_extension(".log");
  Command command{request.program, {"freeze", request.run.root.string(), "--data", request.data, "-o", file.string()}};
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
