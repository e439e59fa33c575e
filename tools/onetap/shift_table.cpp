#include "tools/onetap/shift_table.h"

#include "onetap/base/fail.h"
#include "onetap/graph/shift_table.h"
#include "onetap/journal/good_lines.h"
#include "onetap/journal/run_files.h"
#include "onetap/report/heatmap.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"

#include <filesystem>

namespace onetap::tool {
namespace {

// As heat maps have them: those of the last tested epoch of a run.
std::vector<PositionShares> kept_taps(const std::string& source) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(source, ignored)) return kept_shares(read_tap(source));
  const RunFiles files(source);
  files.read_graph();  // says what is wrong with a directory that holds no run
  std::vector<std::string> notices;
  const auto lines = read_good_lines<AttentionLine>(files.attention(), notices);
  if (lines.empty() && !notices.empty()) {
    fail_data("[train] expected learned taps for the shift table, found none: {}", notices.front());
  }
  for (const std::string& notice : notices) console().warn(notice);
  return lines.empty() ? std::vector<PositionShares>() : kept_shares(lines.back());
}

}  // namespace

void apply_shift_table(const Recipe& recipe, Graph& graph) {
  const auto source = shift_table_run(recipe);
  if (!source) return;
  std::vector<TapShares> learned;
  for (PositionShares& layer : kept_taps(*source)) {
    learned.push_back({layer.layer, {layer.kernel_h, layer.kernel_w}, std::move(layer.share)});
  }
  if (learned.empty()) {
    fail_data("[train] expected learned taps for the shift table, got none: train a run with --method sal first ({})",
              *source);
  }
  set_shift_table(graph, learned);
}

}  // namespace onetap::tool
