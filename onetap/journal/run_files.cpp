#include "onetap/journal/run_files.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/graph/text.h"
#include "onetap/journal/metrics.h"
#include "onetap/journal/run_sums.h"

#include <algorithm>
#include <system_error>

namespace onetap {
namespace {

constexpr uint64_t kMaxNetwork = 32u << 20;

// Of the newest checkpoint.
RunState read_last_state(const RunFiles& files) {
  const std::filesystem::path file = files.checkpoints() / "last" / "state.json";
  return RunState::parse(read_file(file, 1u << 20), file.string());
}

}  // namespace

bool RunFiles::holds_run() const {
  std::error_code error;
  return std::filesystem::exists(config(), error);
}

Recipe RunFiles::read_config() const {
  if (!holds_run()) fail_data("[run] expected a run directory with config.toml, got {}", named_place(root));
  const std::string text = read_summed(config(), sums(), 1u << 20);
  Recipe recipe;
  std::vector<std::string> keys;
  try {
    keys = apply_recipe_text(recipe, text, config().string());
  } catch (const Error& problem) {
    throw Error(ErrorKind::kData, problem.what());  // a recipe that onetap wrote, not one that the user did
  }
  // Both are written behind everything else. Without this, an emptied file would be a run of defaults.
  const bool has_end = text.find("\n[provenance]") != std::string::npos ||
                       std::find(keys.begin(), keys.end(), recipe_fields().back().key) != keys.end();
  if (!has_end)
    fail_data("[run] expected a whole recipe with [provenance], got {} bytes ({})", text.size(), config().string());
  return recipe;
}

Graph RunFiles::read_graph() const {
  if (!holds_run()) fail_data("[run] expected a run directory with config.toml, got {}", named_place(root));
  const std::string text = read_summed(network(), sums(), kMaxNetwork);
  try {
    return parse_network(text);
  } catch (const Error& problem) {
    fail_data("{} ({})", problem.what(), network().string());
  }
}

bool RunFiles::finished() const {
  try {
    const RunState state = read_last_state(*this);
    const auto lines = read_metrics(metrics());
    return !lines.empty() && lines.back().split == "test" && state.epoch_logged && state.step == lines.back().step &&
           (state.ended || lines.back().epoch == read_config().all_epochs());
  } catch (const Error&) {
    return false;
  }
}

std::optional<RunState> RunFiles::last_state() const {
  try {
    return read_last_state(*this);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool RunFiles::ended_early() const {
  const auto state = last_state();
  return state && state->ended && state->epoch_logged;
}

}  // namespace onetap
