// A trained network that a run learns from (distillation, Hinton et al., 2015).
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/journal/run_state.h"
#include "onetap/nn/graph_module.h"
#include "onetap/recipe/recipe.h"

#include <functional>
#include <string>

namespace onetap {

struct LoadedTeacher {
  nn::GraphModule module{nullptr};  // dense: a pruned network has zeros where it keeps no tap
  std::string checksum;             // SHA-256 of its files
};

// What `recipe.teacher` names: a run (its last checkpoint, averaged weights if it has `ema`), a checkpoint of a run, or
// a .tap file. Layers with a soft form are taken in their hard form, as they are frozen. kData if it is missing or
// damaged; kUsage if it has other classes than the data, takes images of another size or saw other data. `notice` hears
// which checkpoint is used where the last one is damaged.
LoadedTeacher load_teacher(const Recipe& recipe, const Graph& student, const DataSource& source,
                           const std::function<void(const std::string&)>& notice);

// kData if the run has learned from another teacher so far.
void check_same_teacher(const LoadedTeacher& teacher, const RunState& state, const Recipe& recipe);

}  // namespace onetap
