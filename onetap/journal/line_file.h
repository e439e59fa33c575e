// A file of lines that a run appends to, cut back to what its checkpoint knows when the run resumes.
#pragma once

#include "onetap/base/file.h"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace onetap {

class LineFile {
 public:
  // Keeps the first `keep_bytes` of the file: what was on record at the checkpoint the run resumes from.
  // kData if the file is shorter.
  LineFile(const std::filesystem::path& path, uint64_t keep_bytes);

  // Appends the line and its end.
  void write(std::string_view line);
  void sync() { writer_.sync(); }
  uint64_t bytes() const { return bytes_; }

 private:
  static FileWriter open(const std::filesystem::path& path, uint64_t keep_bytes);

  FileWriter writer_;
  uint64_t bytes_;
};

}  // namespace onetap
