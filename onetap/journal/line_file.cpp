#include "onetap/journal/line_file.h"

#include "onetap/base/fail.h"

#include <string>
#include <system_error>

namespace onetap {

FileWriter LineFile::open(const std::filesystem::path& path, uint64_t keep_bytes) {
  std::error_code missing;
  const uint64_t size = std::filesystem::file_size(path, missing);
  const uint64_t present = missing ? 0 : size;
  if (present < keep_bytes) {
    fail_data("[run] expected at least {} bytes on record, got {} ({})", keep_bytes, present, path.string());
  }
  if (present > keep_bytes) truncate_file(path, keep_bytes);
  return FileWriter(path, FileWriter::Mode::kAppend);
}

LineFile::LineFile(const std::filesystem::path& path, uint64_t keep_bytes)
    : writer_(open(path, keep_bytes)), bytes_(keep_bytes) {}

void LineFile::write(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  writer_.write(text);
  bytes_ += text.size();
}

}  // namespace onetap
