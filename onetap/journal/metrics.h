// metrics.jsonl: one JSON object a line, appended while a run goes on, cut back when it resumes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

struct MetricLine {
  int64_t step = 0;   // optimiser steps done
  int64_t epoch = 0;  // epochs done
  std::string split;  // "train", "test" or "validation"
  double loss = 0;    // NaN where an old file has null: versions before wrote it for a run that diverged
  double acc_soft = 0;
  std::optional<double> acc_hard;  // of the test set only
  double lr = 0;
  double temperature = 0;
  double img_per_s = 0;
  std::optional<double> data_wait;  // of training only: the share of time without data to work on. Not in old files
  double wall_s = 0;                // of all sittings of the run together

  std::string json() const;
  // kData naming `label` if the text is no such object.
  static MetricLine parse(std::string_view text, std::string_view label);
};

// All whole lines of a file, in order; a last line without its end (a run going on, or killed) is left out.
std::vector<MetricLine> parse_metrics(std::string_view text, std::string_view label);
std::vector<MetricLine> read_metrics(const std::filesystem::path& path);

// The last line of the test set; null if there is none.
const MetricLine* last_test(const std::vector<MetricLine>& lines);

}  // namespace onetap
