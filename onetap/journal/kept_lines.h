// What a resumed run goes on from: the lines of its journal that belong to its state, checked before more are added.
#pragma once

#include "onetap/journal/run_state.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace onetap {

using JournalNotice = std::function<void(const std::string&)>;

// The first so many bytes of the file are good lines of the state, which remembers `bytes` of them. Where they are not,
// the file is mended: damaged lines are dropped, those of later steps too, and the file as it was is kept beside it as
// NAME.damaged. `notice` is told. The training goes on without a line, for its weights are worth more than its log.
template <typename Line>
uint64_t kept_lines(const std::filesystem::path& path, const RunState& state, uint64_t bytes,
                    const JournalNotice& notice);

}  // namespace onetap
