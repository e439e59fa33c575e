// One HTML page about one or several runs: curves, attention, counts. It stands alone: nothing is loaded from
// elsewhere.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/journal/attention_log.h"
#include "onetap/journal/metrics.h"
#include "onetap/recipe/recipe.h"

#include <filesystem>
#include <string>
#include <vector>

namespace onetap {

struct ReportRun {
  std::string label;  // as the user typed the run
  Recipe recipe;
  Graph graph;
  std::vector<MetricLine> metrics;       // none before the first epoch ends
  std::vector<AttentionLine> attention;  // none for dense networks
};

// kData if `run` is no run directory. Takes no lock: a run that is going on can be read.
ReportRun read_report_run(const std::filesystem::path& run);

// The whole page. Safe for any label and layer name: they are data to the page's script, never part of its markup.
std::string report_page(const std::vector<ReportRun>& runs);

}  // namespace onetap
