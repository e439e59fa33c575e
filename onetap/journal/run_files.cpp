#include "onetap/journal/run_files.h"

#include "onetap/base/fail.h"
#include "onetap/graph/text.h"

#include <system_error>

namespace onetap {

bool RunFiles::holds_run() const {
  std::error_code error;
  return std::filesystem::exists(config(), error);
}

Recipe RunFiles::read_config() const {
  if (!holds_run()) fail_data("[run] expected a run directory with config.toml, got {}", root.string());
  return read_recipe(config());
}

Graph RunFiles::read_graph() const {
  if (!holds_run()) fail_data("[run] expected a run directory with config.toml, got {}", root.string());
  return read_network(network());
}

}  // namespace onetap
