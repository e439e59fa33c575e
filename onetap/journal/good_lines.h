// The lines of a run's journal that can be read, for whoever shows a run: a damaged line costs no more than itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace onetap {

// Of metrics.jsonl (MetricLine) or attention.jsonl (AttentionLine). One notice is added about those that cannot be
// read: what is wrong with the first, and how many more there are. A file that is not there has none.
template <typename Line>
std::vector<Line> read_good_lines(const std::filesystem::path& path, std::vector<std::string>& notices);

}  // namespace onetap
