#include "onetap/base/file.h"

#include "onetap/base/fail.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace onetap {
namespace {

std::string reason() {
  return std::strerror(errno);
}

struct Closer {
  int descriptor;
  ~Closer() { ::close(descriptor); }
};

const char* kind_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO or pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

struct OpenFile {
  int descriptor = -1;  // with errno set if there is none, 0 if it is not a regular file
  struct stat info {};
};

// Looks before it opens, and does not wait where another thing takes the name in between.
OpenFile open_regular(const fs::path& path) {
  OpenFile file;
  if (::stat(path.c_str(), &file.info) != 0) return file;
  errno = 0;
  if (!S_ISREG(file.info.st_mode)) return file;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return file;
  const bool known = ::fstat(descriptor, &file.info) == 0;
  if (known && S_ISREG(file.info.st_mode)) {
    file.descriptor = descriptor;
  } else {
    ::close(descriptor);
    if (known) errno = 0;
  }
  return file;
}

// Fills `text` as far as the file goes and cuts it there; false, with errno set, if reading fails.
bool fill(int descriptor, std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::read(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return true;
}

// What starts with `front` in a directory and is held by nobody.
void remove_left(const fs::path& parent, const std::string& front, bool even_unlocked) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (entry.path().filename().string().rfind(front, 0) != 0) continue;
    const auto hold = DirectoryHold::take(entry.path());
    std::error_code ignored;
    if (hold && (hold->is_locked() || even_unlocked)) fs::remove_all(entry.path(), ignored);
  }
}

// kUsage where a file must not take the place of what is there.
void expect_file_place(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return;
  fail_usage("[file] expected the name of a file, got {} ({})", kind_name(info.st_mode), path.string());
}

}  // namespace

void report_large_files_as_errors() {
  std::signal(SIGXFSZ, SIG_IGN);
}

std::string read_start(const fs::path& path, size_t count) {
  const OpenFile file = open_regular(path);
  if (file.descriptor < 0) return {};
  const Closer closer{file.descriptor};
  std::string text(count, '\0');
  return fill(file.descriptor, text) ? text : std::string();
}

std::string read_file(const fs::path& path, uint64_t limit) {
  const OpenFile file = open_regular(path);
  if (file.descriptor < 0 && errno == 0) {
    fail_data("[file] expected a file, got {} ({})", kind_name(file.info.st_mode), path.string());
  }
  const auto refuse = [&](const char* what) {
    const bool is_missing = errno == ENOENT || errno == ENOTDIR;
    const std::string text = fmt::format("[file] cannot {} {}: {}", what, path.string(), reason());
    if (is_missing) throw Error(ErrorKind::kData, text);
    throw UnreadableFile(text);
  };
  if (file.descriptor < 0) refuse("open");
  const Closer closer{file.descriptor};
  const auto size = static_cast<uint64_t>(file.info.st_size);
  if (size > limit) {
    fail_data("[file] expected at most {} bytes, got {} ({})", limit, size, path.string());
  }
  std::string text(size, '\0');
  if (!fill(file.descriptor, text)) refuse("read");
  return text;
}

FileWriter::FileWriter(const fs::path& path, Mode mode) : path_(path) {
  const int how = mode == Mode::kAppend ? O_APPEND : O_TRUNC;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0644);
  if (descriptor_ < 0) fail("[file] cannot write {}: {}", path.string(), reason());
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(const void* bytes, size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::write(descriptor_, next, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("[file] cannot write {}: {}", path_.string(), reason());
    next += done;
    count -= static_cast<size_t>(done);
  }
}

void FileWriter::sync() {
  if (::fdatasync(descriptor_) != 0) fail("[file] cannot sync {}: {}", path_.string(), reason());
}

void FileWriter::finish() {
  sync();
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    fail("[file] cannot close {}: {}", path_.string(), reason());
  }
}

std::string named_place(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool missing = std::filesystem::symlink_status(path, ignored).type() == std::filesystem::file_type::not_found;
  return path.string() + (missing ? ", which does not exist" : "");
}

void write_file_atomic(const fs::path& path, std::string_view text) {
  write_files_atomic({{path, text}});
}

fs::path full_path(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error) return path;
  const fs::path folder = fs::weakly_canonical(whole.parent_path(), error);
  return (error ? whole.parent_path().lexically_normal() : folder) / whole.filename();
}

void write_files_atomic(const std::vector<WholeFile>& files) {
  std::set<fs::path> places;
  for (const WholeFile& file : files) {
    if (places.insert(full_path(file.path)).second) continue;
    fail_usage("[file] expected another place for each file, got {} twice", file.path.string());
  }
  const auto aside = [](const fs::path& path) { return fs::path(path) += fmt::format(".{}.tmp", ::getpid()); };
  try {
    for (const WholeFile& file : files) {
      FileWriter writer(aside(file.path));
      writer.write(file.text);
      writer.finish();
    }
    for (const WholeFile& file : files) expect_file_place(file.path);
    for (const WholeFile& file : files) put_in_place(aside(file.path), file.path);
  } catch (...) {
    for (const WholeFile& file : files) ::unlink(aside(file.path).c_str());
    throw;
  }
}

void put_in_place(const fs::path& from, const fs::path& to) {
  expect_file_place(to);
  if (::rename(from.c_str(), to.c_str()) != 0) fail("[file] cannot write {}: {}", to.string(), reason());
  sync_directory(to.has_parent_path() ? to.parent_path() : fs::path("."));
}

void truncate_file(const fs::path& path, uint64_t bytes) {
  if (::truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
    fail("[file] cannot truncate {}: {}", path.string(), reason());
  }
  FileWriter(path, FileWriter::Mode::kAppend).finish();
}

void sync_directory(const fs::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("[file] cannot open {}: {}", directory.string(), reason());
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  // Some network file systems do not sync directories; they order renames themselves.
  if (result != 0 && error != EINVAL && error != ENOTSUP) {
    fail("[file] cannot sync {}: {}", directory.string(), std::strerror(error));
  }
}

void make_directories(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) fail("[file] cannot create {}: {}", directory.string(), error.message());
}

std::unique_ptr<DirectoryHold> DirectoryHold::take(const fs::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  const bool is_locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  const bool is_taken = !is_locked && errno == EWOULDBLOCK;
  std::unique_ptr<DirectoryHold> hold(new DirectoryHold(descriptor, is_locked));
  struct stat here {
  }, held{};
  const bool is_there = ::fstat(descriptor, &held) == 0 && ::stat(directory.c_str(), &here) == 0 &&
                        here.st_ino == held.st_ino && here.st_dev == held.st_dev;
  return is_there && !is_taken ? std::move(hold) : nullptr;
}

DirectoryHold::~DirectoryHold() {
  ::close(descriptor_);
}

StagedDirectory::StagedDirectory(const fs::path& final_path) : final_(final_path) {
  constexpr int kTries = 1000;  // numbers that killed processes of this id left, and new directories taken for such
  const fs::path parent = final_.parent_path();
  const std::string front = kPrefix + final_.filename().string() + ".";
  make_directories(parent);
  remove_left(parent, front, /*even_unlocked=*/false);
  for (int number = 0; !hold_; ++number) {
    staging_ = parent / fmt::format("{}{}-{}", front, ::getpid(), number);
    const bool is_made = ::mkdir(staging_.c_str(), 0777) == 0;
    const int error = errno;
    if (is_made) hold_ = DirectoryHold::take(staging_);
    if (hold_ || (!is_made && error == EEXIST && number < kTries)) continue;
    if (!is_made) fail("[file] cannot create {}: {}", staging_.string(), std::strerror(error));
    // Taken for a left one by somebody else, who removes it: the next number. Not if it is there and cannot be opened.
    const bool is_closed = ::access(staging_.c_str(), R_OK) != 0 && errno == EACCES;
    std::error_code ignored;
    fs::remove(staging_, ignored);
    if (is_closed || number >= kTries) {
      fail("[file] expected a new directory that can be opened, got none: {}", staging_.string());
    }
  }
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(staging_, ignored);
}

void StagedDirectory::commit() {
  struct stat replaced {};
  if (::stat(final_.c_str(), &replaced) == 0 && S_ISDIR(replaced.st_mode)) {
    ::chmod(staging_.c_str(), replaced.st_mode & 07777);
  }
  sync_directory(staging_);
  if (::rename(staging_.c_str(), final_.c_str()) != 0) {
    const std::string problem = reason();
    ::chmod(staging_.c_str(), 0700);  // so that it can be removed
    fail("[file] cannot rename {} to {}: {}", staging_.string(), final_.string(), problem);
  }
  committed_ = true;
  sync_directory(final_.parent_path());
}

void StagedDirectory::clean(const fs::path& parent) {
  remove_left(parent, kPrefix, /*even_unlocked=*/true);
}

DirectoryLock::DirectoryLock(const fs::path& directory) {
  const fs::path path = directory / ".lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("[file] cannot write {}: {}", path.string(), reason());
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    const ssize_t count = ::read(descriptor_, holder, sizeof(holder) - 1);
    ::close(descriptor_);
    fail("[run] {} is in use by process {}; two runs cannot write one directory", directory.string(),
         count > 0 ? holder : "(unknown)");
  }
  const std::string self = std::to_string(::getpid());
  // The number only helps the message above; the lock itself is the kernel's.
  if (::ftruncate(descriptor_, 0) == 0) (void)!::write(descriptor_, self.data(), self.size());
}

DirectoryLock::~DirectoryLock() {
  ::close(descriptor_);
}

}  // namespace onetap
