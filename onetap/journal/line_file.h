// A file of lines that a run appends to, cut back to what its checkpoint knows when the run resumes.
#pragma once

#include "onetap/base/file.h"
#include "onetap/base/text.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// Every whole line of a file, parsed; a last line without its end (a run going on, or killed) is left out. What a
// line's parser throws names `label` and the line's number.
template <typename Line>
std::vector<Line> parse_lines(std::string_view text, std::string_view label) {
  std::vector<Line> lines;
  for_each_whole_line(text, [&](std::string_view line, size_t number) {
    lines.push_back(Line::parse(line, std::string(label) + ":" + std::to_string(number)));
  });
  return lines;
}

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
