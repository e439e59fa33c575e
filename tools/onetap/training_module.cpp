// What libonetap_training.so offers to the command.
#include "onetap/base/version.h"
#include "tools/onetap/training.h"

extern "C" const onetap::tool::TrainingModule* onetap_training_module() {
  using namespace onetap::tool;
  static constexpr TrainingModule kModule = {ONETAP_VERSION, add_train,          add_freeze,
                                             add_prune,      add_sensitivity,    add_bench_train,
                                             evaluate_run,   libtorch_benchmark, export_run};
  return &kModule;
}
