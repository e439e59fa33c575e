#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/fetch/download.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>

namespace fs = std::filesystem;

namespace onetap {

void unpack_members(const fs::path& archive, const std::vector<std::string>& members, const fs::path& directory) {
  const std::unique_ptr<struct archive, int (*)(struct archive*)> reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_tar(reader.get());
  const auto bad = [&] {
    const char* reason = archive_error_string(reader.get());
    fail_data("[fetch] expected a .tar.gz archive, got {} ({})", reason != nullptr ? reason : "damaged data",
              archive.string());
  };
  if (archive_read_open_filename(reader.get(), archive.c_str(), 1 << 16) != ARCHIVE_OK) bad();

  std::vector<std::string> missing = members;
  std::vector<char> buffer(1 << 20);
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK) bad();
    const char* path = archive_entry_pathname(entry);
    // Only the last part of a member's path is used, and only if we asked for it: no path can lead outside.
    const std::string name = path == nullptr ? std::string() : fs::path(path).filename().string();
    const auto wanted = std::find(missing.begin(), missing.end(), name);
    if (wanted == missing.end() || archive_entry_filetype(entry) != AE_IFREG) continue;
    missing.erase(wanted);
    FileWriter writer(directory / name);
    for (;;) {
      const la_ssize_t count = archive_read_data(reader.get(), buffer.data(), buffer.size());
      if (count < 0) bad();
      if (count == 0) break;
      writer.write(buffer.data(), static_cast<size_t>(count));
    }
    writer.finish();
  }
  if (!missing.empty()) {
    fail_data("[fetch] expected {} in the archive, got none ({})", missing.front(), archive.string());
  }
}

}  // namespace onetap
