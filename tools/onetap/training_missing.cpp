// The verbs that need LibTorch, in a build without it: they say so.
#include "onetap/base/fail.h"
#include "tools/onetap/bench.h"
#include "tools/onetap/eval.h"
#include "tools/onetap/export.h"
#include "tools/onetap/verbs.h"

namespace onetap::tool {
namespace {

[[noreturn]] void needs_libtorch(const char* verb) {
  fail_usage("[{}] this onetap was built without LibTorch; build with -DONETAP_TRAINING=ON", verb);
}

void add_missing(CLI::App& app, Action& action, const char* name, const char* what) {
  CLI::App* verb = app.add_subcommand(name, std::string(what) + " (not in this build)");
  verb->allow_extras();
  verb->callback([name, &action] { action = [name]() -> int { needs_libtorch(name); }; });
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  add_missing(app, action, "train", "train a network");
}
void add_bench_train(CLI::App& bench, Action& action) {
  add_missing(bench, action, "train", "what a training step costs");
}
void require_training(const char* verb) {
  needs_libtorch(verb);
}
void add_freeze(CLI::App& app, Action& action) {
  add_missing(app, action, "freeze", "a run to a .tap file");
}
void add_prune(CLI::App& app, Action& action) {
  add_missing(app, action, "prune", "cut channels out of a trained dense network");
}
void add_sensitivity(CLI::App& app, Action& action) {
  add_missing(app, action, "sensitivity", "harden one layer at a time");
}

std::vector<EvalRow> evaluate_run(const EvalArguments&, const std::string&, OpenedData&) {
  needs_libtorch("eval");
}
std::unique_ptr<Benchmark> libtorch_benchmark(const TapNet&, const BenchSetting&, std::string&) {
  needs_libtorch("bench");
}
void export_run(const ExportArguments&) {
  needs_libtorch("export");
}

}  // namespace onetap::tool
