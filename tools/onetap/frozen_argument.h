// A frozen network as verbs take it: a .tap file, or a run directory that holds one.
#pragma once

#include <filesystem>
#include <string>

namespace onetap::tool {

// A .tap file by its content, or by its name where there is none, or another: reading it says what is wrong.
bool names_tap(const std::string& given);

// True for a run directory with a model.tap in it.
bool holds_frozen(const std::string& given);

// The .tap file that was meant: RUN/model.tap for a run, which a line on stderr says, with a warning if it is
// not from the run's last step, though nobody chose another checkpoint; anything else as it was given.
// kUsage, with the command that makes the file, for a run that is not frozen yet.
std::filesystem::path frozen_file(const std::string& given, const char* verb);

}  // namespace onetap::tool
