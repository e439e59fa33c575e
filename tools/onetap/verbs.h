// The verbs of the command line, one file each: declare options, and what to do once they are parsed.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace onetap::tool {

// What the chosen verb wants to do; returns the exit code.
using Action = std::function<int()>;

// kUsage if the training module is not installed.
void require_training(const char* verb);

void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_nets(CLI::App& app, Action& action);
void add_count(CLI::App& app, Action& action);
void add_freeze(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_prune(CLI::App& app, Action& action);
void add_sensitivity(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_heatmap(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_bench_train(CLI::App& bench, Action& action);
void add_bench_data(CLI::App& bench, Action& action);
void add_launch(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_reproduce(CLI::App& app, Action& action);
void add_frontier(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_manual(CLI::App& app, Action& action);

}  // namespace onetap::tool
