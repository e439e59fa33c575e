// Where a verb writes, checked before its work: a wrong -o costs no training, calibration or test.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>

namespace onetap::tool {

// kUsage if no file can be written there: an empty name, a folder, a device, no folder around it, or a read-only one.
// Nor in place of what training wrote into a run directory.
void check_output_file(const char* verb, const std::filesystem::path& out);

// The same, and if `out` is the file that is read, by this or by another name.
void check_output_file(const char* verb, const std::filesystem::path& source, const std::filesystem::path& out);

// kUsage unless a folder is there and empty, or can be made. Folders around it may be missing.
void check_output_folder(const char* verb, const std::filesystem::path& out);

// kUsage unless the folder is there, or can be made. What it holds does not matter.
void check_output_place(const char* verb, const std::filesystem::path& out);

// For the flags where an empty name would mean their default.
CLI::Validator some_name();

}  // namespace onetap::tool
