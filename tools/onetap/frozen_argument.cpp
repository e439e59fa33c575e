#include "tools/onetap/frozen_argument.h"

#include "onetap/base/fail.h"
#include "onetap/journal/metrics.h"
#include "onetap/journal/run_files.h"
#include "onetap/tap/tap_file.h"
#include "onetap/tap/test_fact.h"
#include "tools/onetap/console.h"

#include <fmt/format.h>

#include <system_error>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

void warn_if_of_another_step(const RunFiles& files, const char* verb) {
  try {
    const auto lines = read_metrics(files.metrics());
    const MetricLine* last = last_test(lines);
    if (last == nullptr) return;
    const auto text = other_step_text(files.model().string(), read_tap(files.model()), last->step);
    if (text) console().warn(fmt::format("[{}] {}", verb, *text));
  } catch (const Error&) {
    // Whoever reads these files says what is wrong with them.
  }
}

}  // namespace

bool names_tap(const std::string& given) {
  std::error_code ignored;
  return looks_like_tap(given) || (fs::path(given).extension() == ".tap" && !fs::is_directory(given, ignored));
}

bool holds_frozen(const std::string& given) {
  std::error_code ignored;
  return fs::is_regular_file(RunFiles(given).model(), ignored);
}

fs::path frozen_file(const std::string& given, const char* verb) {
  std::error_code ignored;
  if (!fs::is_directory(given, ignored)) return given;
  const RunFiles files(given);
  if (holds_frozen(given)) {
    console().note(fmt::format("using {}", files.model().string()));
    warn_if_of_another_step(files, verb);
    return files.model();
  }
  if (files.holds_run()) {
    fail_usage("[{0}] expected a frozen network, got the run {1}: freeze it first (onetap freeze {1})", verb, given);
  }
  fail_data("[{}] expected a .tap file or a run directory with model.tap, got the folder {}", verb, given);
}

}  // namespace onetap::tool
