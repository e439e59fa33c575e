// The half of the command that needs LibTorch, as the other half sees it: a shared library of its own, beside ours,
// that is opened when a verb needs it. LibTorch takes half a second to load, and most verbs do without it.
#pragma once

#include "tools/onetap/bench.h"
#include "tools/onetap/eval.h"
#include "tools/onetap/export.h"
#include "tools/onetap/verbs.h"

namespace onetap::tool {

using AddVerb = void (*)(CLI::App& app, Action& action);

// What the library offers; its function onetap_training_module() gives the address of one.
struct TrainingModule {
  const char* version;  // ONETAP_VERSION of its sources: another one has other classes
  AddVerb add_train, add_freeze, add_prune, add_sensitivity, add_bench_train;
  decltype(&tool::evaluate_run) evaluate_run;
  decltype(&tool::libtorch_benchmark) libtorch_benchmark;
  decltype(&tool::export_run) export_run;
};

// A verb of the library, with what the help shows before it is opened.
struct TrainingVerb {
  const char* name;
  const char* summary;
  AddVerb TrainingModule::*add;
};
inline constexpr TrainingVerb kTrain = {"train", "train a network, or resume a run", &TrainingModule::add_train};
inline constexpr TrainingVerb kFreeze = {
    "freeze", "convert a run to a .tap file: hard max, batch norm folded; compares outputs on test images",
    &TrainingModule::add_freeze};
inline constexpr TrainingVerb kPrune = {"prune", "cut channels out of a trained dense network: l1, nisp, pcas",
                                        &TrainingModule::add_prune};
inline constexpr TrainingVerb kSensitivity = {"sensitivity", "harden one layer at a time: which layers to leave dense",
                                              &TrainingModule::add_sensitivity};
inline constexpr TrainingVerb kBenchTrain = {"train", "time a training step, phase by phase",
                                             &TrainingModule::add_bench_train};

// Thrown by the parser when the command line names a verb whose options are not known yet: open the library, and parse
// again.
struct TrainingNeeded {
  std::string verb;
};

bool training_installed();

// Opens the library unless it is open. kUsage if it is not installed, kFailure if it cannot be loaded.
const TrainingModule& open_training(const std::string& verb);

// The verb itself if the library is open. Otherwise its name, which throws TrainingNeeded, or says what is missing.
void add_training_verb(CLI::App& app, Action& action, const TrainingVerb& verb);

// For a verb that looks at the options of all others.
void needs_every_verb(CLI::App& verb);

}  // namespace onetap::tool
