// One HTML page about one or several runs: curves, attention, counts. It is self-contained.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/journal/attention_log.h"
#include "onetap/journal/class_scores.h"
#include "onetap/journal/metrics.h"
#include "onetap/recipe/recipe.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

// model-int8.tap of a run.
struct ReportInt8 {
  uint64_t bytes = 0;
  std::optional<double> accuracy;    // that `quantize` found, on all or some of the test images
  std::optional<double> latency_ms;  // if somebody measured it
};

struct ReportRun {
  std::string label;  // as the user typed the run
  // Absent where the file that holds it is damaged.
  std::optional<Recipe> recipe;
  std::optional<Graph> graph;
  bool ended_early = false;                       // by `patience`, before the last epoch of the recipe
  std::vector<MetricLine> metrics;                // none before the first epoch ends
  std::vector<AttentionLine> attention;           // none for dense networks
  std::vector<std::string> notices;               // what could not be read, and why
  std::vector<std::string> remarks;               // what else a reader should know of its files
  std::map<std::string, std::string> provenance;  // command, started, onetap, ...: what the run says of its start
  std::optional<ClassScores> classes;             // what `eval --per-class` found
  std::optional<uint64_t> file_bytes;             // of model.tap, if the run is frozen
  std::optional<double> latency_ms;               // of model.tap, if somebody measured it
  std::optional<ReportInt8> int8;                 // if the run is quantized
};

// Takes no lock: a run that is going on can be read. What is damaged costs no more than itself: a file, or a line of
// metrics.jsonl and attention.jsonl; `notices` names it. kData if `run` is no run directory or nothing of it can be
// read.
ReportRun read_report_run(const std::filesystem::path& run);

// The whole page. Safe for any label and layer name: they are data to the page's script, never part of its markup.
std::string report_page(const std::vector<ReportRun>& runs);

}  // namespace onetap
