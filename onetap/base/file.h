// Files that are either there whole or not there: write aside, sync, rename.
#pragma once

#include "onetap/base/error.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// For the start of a program: a write beyond the limit on the size of files (ulimit -f) fails with a reason, where it
// would otherwise end the program by SIGXFSZ.
void report_large_files_as_errors();

// A file that is there and cannot be read (permissions, a disk that fails): what it holds is not known to be bad.
class UnreadableFile : public Error {
 public:
  explicit UnreadableFile(const std::string& message) : Error(ErrorKind::kData, message) {}
};

// The whole file. kData if it is missing, not a regular file, or longer than `limit` bytes. Nothing else is opened: a
// FIFO would wait for a writer, a device may act.
std::string read_file(const std::filesystem::path& path, uint64_t limit = uint64_t{1} << 40);

// The first bytes, at most `count`, of any regular file, /proc and /sys included; none if it cannot be read.
std::string read_start(const std::filesystem::path& path, size_t count);

// A file open for writing, with every error reported (a full disk shows at write or at sync).
class FileWriter {
 public:
  enum class Mode { kTruncate, kAppend };

  explicit FileWriter(const std::filesystem::path& path, Mode mode = Mode::kTruncate);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Bytes written are on the disk when this returns.
  void sync();

  // Sync and close; the destructor alone closes without checking.
  void finish();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Replace `path` by `text` so that a reader sees the old file or the new one, never a part.
void write_file_atomic(const std::filesystem::path& path, std::string_view text);

// The name for a message, with ", which does not exist" behind it where that is so.
std::string named_place(const std::filesystem::path& path);

struct WholeFile {
  std::filesystem::path path;
  std::string_view text;
};

// Absolute, and with the links in its folder resolved: two names of one file are equal. A link as the last part stays,
// as a file that is written takes its place.
std::filesystem::path full_path(const std::filesystem::path& path);

// The same for several: all are written and synced under other names before the first is put in its place, so that a
// full disk leaves every old file, and no new one. kUsage if two of them are one file.
void write_files_atomic(const std::vector<WholeFile>& files);

// Renames a whole, synced file to its name; the new name is on the disk when this returns. kUsage if that is the name
// of a device, FIFO or socket: a file must not take its place.
void put_in_place(const std::filesystem::path& from, const std::filesystem::path& to);

// Cut a file to `bytes` and sync it.
void truncate_file(const std::filesystem::path& path, uint64_t bytes);

// The renames and new names inside a directory are on the disk when this returns.
void sync_directory(const std::filesystem::path& directory);

// Creates a directory and its parents; kFailure with the reason when that cannot be done.
void make_directories(const std::filesystem::path& directory);

// Keeps others that ask for the same out of a directory, without a file in it, while this lives.
class DirectoryHold {
 public:
  // Nothing if somebody else holds it, or it is gone.
  static std::unique_ptr<DirectoryHold> take(const std::filesystem::path& directory);
  DirectoryHold(const DirectoryHold&) = delete;
  DirectoryHold& operator=(const DirectoryHold&) = delete;
  ~DirectoryHold();

  // False where directories cannot be locked (NFS): there nobody is kept out.
  bool is_locked() const { return is_locked_; }

 private:
  DirectoryHold(int descriptor, bool is_locked) : descriptor_(descriptor), is_locked_(is_locked) {}

  int descriptor_;
  bool is_locked_;
};

// A directory written under a temporary name beside its place and renamed when complete. The name is this object's own:
// others that write to the same place at the same time do not touch it, and the later commit() fails.
// Without commit() nothing is left behind; after a kill only a name starting with kPrefix is, which the next one for
// the same place removes.
class StagedDirectory {
 public:
  static constexpr const char* kPrefix = ".partial-";

  explicit StagedDirectory(const std::filesystem::path& final_path);
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;
  ~StagedDirectory();

  const std::filesystem::path& path() const { return staging_; }
  // An empty directory in its place is replaced by one of the same mode.
  void commit();

  // Removes what killed writers left in `parent`. The caller holds a lock: what cannot be locked counts as left.
  static void clean(const std::filesystem::path& parent);

 private:
  std::filesystem::path final_;
  std::filesystem::path staging_;
  std::unique_ptr<DirectoryHold> hold_;  // a process that cannot take it knows that this one still writes
  bool committed_ = false;
};

// Holds a directory for one process; the kernel lets go when the process ends, however it ends.
class DirectoryLock {
 public:
  // kFailure naming the holder's process id when another process holds it.
  explicit DirectoryLock(const std::filesystem::path& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

 private:
  int descriptor_ = -1;
};

}  // namespace onetap
