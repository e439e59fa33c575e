// The verbs that need LibTorch, in a build without it: they say so.
#include "onetap/base/fail.h"
#include "tools/onetap/verbs.h"

namespace onetap::tool {
namespace {

void add_missing(CLI::App& app, Action& action, const char* name, const char* what) {
  CLI::App* verb = app.add_subcommand(name, std::string(what) + " (not in this build)");
  verb->allow_extras();
  verb->callback([name, &action] {
    action = [name]() -> int {
      fail_usage("[{}] this onetap was built without LibTorch; build with -DONETAP_TRAINING=ON", name);
    };
  });
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  add_missing(app, action, "train", "train a network");
}
void add_eval(CLI::App& app, Action& action) {
  add_missing(app, action, "eval", "accuracy of runs");
}

}  // namespace onetap::tool
