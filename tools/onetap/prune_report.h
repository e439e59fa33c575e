// What onetap prune did, for people and for programs.
#pragma once

#include "onetap/graph/channels.h"
#include "onetap/train/evaluate.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace onetap::tool {

struct PruneReport {
  std::string by;
  std::optional<double> ratio;  // or
  std::string preset;
  Graph before, after;
  ChannelPlan plan;
  std::optional<EvalResult> score_before, score_after;
  std::filesystem::path directory;
  std::string data;  // of the run, or as typed

  std::filesystem::path network() const { return directory / "network.txt"; }
  std::filesystem::path weights() const { return directory / "weights.safetensors"; }
};

// The command that trains what is left, by the recipe that is usual for it: 40 epochs at a constant 0.001.
std::string fine_tune_command(const PruneReport& report);

nlohmann::ordered_json prune_json(const PruneReport& report);
std::string prune_tables(const PruneReport& report);

}  // namespace onetap::tool
