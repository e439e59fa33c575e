// attention.jsonl: what the attention of every Shift Attention Layer looked like after each tested epoch.
#pragma once

#include "onetap/base/file.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

struct LayerAttention {
  // Bins of the histogram of max P: equal parts of 0..1, the last one closed.
  static constexpr size_t kBins = 20;

  std::string name;
  int64_t kernel_h = 0;
  int64_t kernel_w = 0;
  std::vector<double> mean_p;       // per position (rows first): P averaged over the slices
  std::vector<int64_t> kept;        // per position: slices that would keep it if frozen now
  std::vector<double> max_p;        // kBins shares of slices by their largest P
  std::optional<double> agreement;  // share of kept taps that the line before kept too; none in the first line
  double none = 0;                  // share of the taps that empty slices leave out

  int64_t positions() const { return kernel_h * kernel_w; }
};

struct AttentionLine {
  int64_t step = 0;   // optimiser steps done
  int64_t epoch = 0;  // epochs done
  double temperature = 0;
  std::vector<LayerAttention> layers;

  std::string json() const;
  // kData naming `label` if the text is no such object or its lists have the wrong length.
  static AttentionLine parse(std::string_view text, std::string_view label);
};

// All whole lines, in order; a last line without its end is left out. A missing file has none.
std::vector<AttentionLine> parse_attention(std::string_view text, std::string_view label);
std::vector<AttentionLine> read_attention(const std::filesystem::path& path);

}  // namespace onetap
