#include "tools/onetap/training.h"

#include "onetap/base/fail.h"
#include "onetap/base/version.h"
#include "tools/onetap/training_advice.h"

#include <dlfcn.h>
#include <filesystem>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

const TrainingModule* opened = nullptr;

// Beside the library that this function is in: so it is in the build folder and wherever it is installed.
fs::path module_path() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&open_training), &here) == 0)
    fail("[training] cannot find the path of its own library");
  fs::path place = here.dli_fname;
  // In the program itself (a wheel's) the name is the one that it was called by, perhaps found in PATH.
  std::error_code ignored;
  if (!place.has_parent_path()) place = fs::read_symlink("/proc/self/exe", ignored);
  return place.parent_path() / "libonetap_training.so";
}

}  // namespace

bool training_installed() {
  std::error_code ignored;
  return fs::exists(module_path(), ignored);
}

void require_training(const char* verb) {
  if (training_installed()) return;
  fail_usage("[{}] this onetap has no training module ({} is missing): {}", verb, module_path().string(),
             training_advice());
}

const TrainingModule& open_training(const std::string& verb) {
  if (opened != nullptr) return *opened;
  require_training(verb.c_str());
  const fs::path path = module_path();
  // Never closed: its objects live as long as the process.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail("[{}] cannot load the training module: {}", verb, ::dlerror());
  using Entry = const TrainingModule* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "onetap_training_module"));
  const TrainingModule* const found = entry == nullptr ? nullptr : entry();
  if (found == nullptr || std::string(found->version) != ONETAP_VERSION) {
    fail("[{}] expected the training module of onetap {}, got {} ({})", verb, ONETAP_VERSION,
         found == nullptr ? "another library" : found->version, path.string());
  }
  opened = found;
  return *opened;
}

void add_training_verb(CLI::App& app, Action& action, const TrainingVerb& verb) {
  if (opened != nullptr) {
    (opened->*verb.add)(app, action);
    return;
  }
  const std::string name = verb.name;
  if (training_installed()) {
    app.add_subcommand(name, verb.summary)->preparse_callback([name](size_t) { throw TrainingNeeded{name}; });
    return;
  }
  CLI::App* missing = app.add_subcommand(name, std::string(verb.summary) + " (training module not installed)");
  missing->footer(std::string("The training module is not installed: ") + training_advice() + ".");
  missing->allow_extras();
  missing->fallthrough(false);
  missing->callback([name, &action] {
    action = [name]() -> int {
      (void)open_training(name);
      return 1;
    };
  });
}

void needs_every_verb(CLI::App& verb) {
  if (opened != nullptr || !training_installed()) return;
  verb.preparse_callback([name = verb.get_name()](size_t) { throw TrainingNeeded{name}; });
}

}  // namespace onetap::tool
