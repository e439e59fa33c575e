// SHA256SUMS of a run: checksums of the files that are written once, when the run is created. `sha256sum -c SHA256SUMS`
// in the run's folder checks them, too.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace onetap {

// A line for each file: its name and what it holds.
std::string sums_text(const std::map<std::string, std::string>& files);

// The text of a file that has a line in `sums`, which lies beside it. kData if it is not what was written; without
// `sums` (a run of an older version) it is taken as it is.
std::string read_summed(const std::filesystem::path& file, const std::filesystem::path& sums, uint64_t limit);

}  // namespace onetap
