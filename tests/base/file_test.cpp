#include "onetap/base/file.h"

#include "tests/support/support.h"

#include <algorithm>
#include <csignal>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::read_text;
using testing::TempDir;
using testing::write_text;

// How a child process that runs `action` ends: with code 0 if that returned true.
int child_status(const std::function<bool()>& action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(action() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

bool in_child(const std::function<bool()>& action) {
  const int status = child_status(action);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

size_t entries(const fs::path& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(File, TheStartOfAnythingThatCanBeRead) {
  const TempDir dir;
  write_text(dir / "a", "0123456789");
  EXPECT_EQ(read_start(dir / "a", 4), "0123");
  EXPECT_EQ(read_start(dir / "a", 10), "0123456789");
  EXPECT_EQ(read_start(dir / "a", 100), "0123456789");
  EXPECT_EQ(read_start("/proc/self/comm", 100).back(), '\n');  // a file without a size
  EXPECT_EQ(read_start(dir / "missing", 4), "");
  EXPECT_EQ(read_start(dir.path(), 4), "");
}

TEST(File, ReadsWholeAndRefusesTooLong) {
  const TempDir dir;
  write_text(dir / "a", std::string("x\0y", 3));
  EXPECT_EQ(read_file(dir / "a"), std::string("x\0y", 3));
  expect_error(ErrorKind::kData, "expected at most 2 bytes, got 3", [&] { read_file(dir / "a", 2); });
  expect_error(ErrorKind::kData, "cannot open", [&] { read_file(dir / "missing"); });
  expect_error(ErrorKind::kData, "expected a file", [&] { read_file(dir.path()); });
}

TEST(File, AtomicWriteReplacesAndLeavesNothingAside) {
  const TempDir dir;
  write_file_atomic(dir / "a", "one");
  write_file_atomic(dir / "a", "two");
  EXPECT_EQ(read_text(dir / "a"), "two");
  EXPECT_EQ(entries(dir.path()), 1u);
}

// A file-size limit makes write() fail in the middle, as a full disk does.
TEST(File, FailedWriteKeepsTheOldFile) {
  const TempDir dir;
  write_file_atomic(dir / "a", "old");
  EXPECT_TRUE(in_child([&] {
    report_large_files_as_errors();
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file_atomic(dir / "a", std::string(5000, 'x'));
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kFailure &&
             std::string(error.what()).find("File too large") != std::string::npos;
    }
    return false;
  }));
  EXPECT_EQ(read_text(dir / "a"), "old");
  EXPECT_EQ(entries(dir.path()), 1u);
}

TEST(File, StagedDirectoryAppearsWholeOrNotAtAll) {
  const TempDir dir;
  {
    const StagedDirectory abandoned(dir / "gone");
    write_text(abandoned.path() / "f", "x");
  }
  EXPECT_EQ(entries(dir.path()), 0u);
  StagedDirectory staged(dir / "there");
  write_text(staged.path() / "f", "x");
  EXPECT_FALSE(fs::exists(dir / "there"));
  staged.commit();
  EXPECT_EQ(read_text(dir / "there" / "f"), "x");
}

TEST(File, SeveralFilesAreAllThereOrNone) {
  const TempDir dir;
  write_text(dir / "a", "old");
  EXPECT_ANY_THROW(write_files_atomic({{dir / "a", "new"}, {dir / "missing" / "b", "new"}}));
  EXPECT_EQ(read_text(dir / "a"), "old");
  EXPECT_EQ(entries(dir.path()), 1u);
  fs::create_directory(dir / "taken");
  EXPECT_ANY_THROW(write_files_atomic({{dir / "a", "new"}, {dir / "taken", "new"}}));
  EXPECT_EQ(read_text(dir / "a"), "old");
  fs::remove(dir / "taken");
  write_files_atomic({{dir / "a", "new"}, {dir / "b", "new"}});
  EXPECT_EQ(read_text(dir / "a") + read_text(dir / "b"), "newnew");
  EXPECT_EQ(entries(dir.path()), 2u);
}

TEST(File, SeveralFilesHaveSeveralNames) {
  const TempDir dir;
  write_text(dir / "a", "old");
  fs::create_directory(dir / "folder");
  fs::create_directory_symlink(dir.path(), dir / "link");
  for (const fs::path& again : {dir / "a", dir / "." / "a", dir / "folder" / ".." / "a", dir / "link" / "a"}) {
    expect_error(ErrorKind::kUsage, "twice", [&] { write_files_atomic({{dir / "a", "new"}, {again, "other"}}); });
    EXPECT_EQ(read_text(dir / "a"), "old");
  }
  EXPECT_EQ(entries(dir.path()), 3u);
  // A link is replaced, not followed.
  fs::create_symlink(dir / "a", dir / "b");
  write_files_atomic({{dir / "a", "new"}, {dir / "b", "other"}});
  EXPECT_EQ(read_text(dir / "a") + ' ' + read_text(dir / "b"), "new other");
}

TEST(File, AStagedDirectoryHasTheModeOfTheEmptyOneInItsPlace) {
  const TempDir dir;
  fs::create_directory(dir / "there");
  fs::permissions(dir / "there", fs::perms::owner_all);
  StagedDirectory staged(dir / "there");
  write_text(staged.path() / "f", "x");
  staged.commit();
  EXPECT_EQ(fs::status(dir / "there").permissions(), fs::perms::owner_all);
  EXPECT_EQ(entries(dir / "there"), 1u);
}

TEST(File, StagedDirectoriesOfOnePlaceDoNotDisturbEachOther) {
  const TempDir dir;
  StagedDirectory first(dir / "there");
  write_text(first.path() / "f", "first");
  {
    StagedDirectory second(dir / "there");
    StagedDirectory::clean(dir.path());
    EXPECT_NE(first.path(), second.path());
    write_text(second.path() / "g", "second");
    EXPECT_EQ(read_text(first.path() / "f"), "first");
    first.commit();
    EXPECT_EQ(read_text(second.path() / "g"), "second");
    expect_error(ErrorKind::kFailure, "cannot rename", [&] { second.commit(); });
  }
  EXPECT_EQ(entries(dir.path()), 1u);
  EXPECT_EQ(entries(dir / "there"), 1u);
  EXPECT_EQ(read_text(dir / "there" / "f"), "first");
}

TEST(File, AStagedDirectoryWhosePlaceWasTakenLeavesNothing) {
  const TempDir dir;
  {
    StagedDirectory staged(dir / "there");
    write_text(staged.path() / "f", "x");
    write_text(dir / "there", "a file");
    fs::permissions(dir / "there", fs::perms::owner_read);
    expect_error(ErrorKind::kFailure, "cannot rename", [&] { staged.commit(); });
    EXPECT_EQ(fs::status(staged.path()).permissions() & fs::perms::owner_all, fs::perms::owner_all);
  }
  EXPECT_EQ(entries(dir.path()), 1u);
}

TEST(File, AStagedDirectoryRemovesWhatAKillLeftOfItsPlaceAlone) {
  const TempDir dir;
  const std::string front = StagedDirectory::kPrefix;
  write_text(dir / (front + "there.1-0") / "f", "half");
  write_text(dir / (front + "other.1-0") / "f", "half");
  EXPECT_TRUE(in_child([&] {  // killed: no destructor
    const auto* killed = new StagedDirectory(dir / "there");
    return fs::exists(killed->path());
  }));
  const StagedDirectory staged(dir / "there");
  EXPECT_EQ(entries(dir.path()), 2u);
  EXPECT_TRUE(fs::exists(dir / (front + "other.1-0")));
}

TEST(File, CleanRemovesWhatAKillLeft) {
  const TempDir dir;
  write_text(dir / (std::string(StagedDirectory::kPrefix) + "x") / "f", "half");
  write_text(dir / "keep" / "f", "whole");
  StagedDirectory::clean(dir.path());
  EXPECT_EQ(entries(dir.path()), 1u);
  EXPECT_TRUE(fs::exists(dir / "keep"));
}

TEST(File, LockIsForOneProcessAndEndsWithIt) {
  const TempDir dir;
  const auto can_lock = [&] {
    try {
      const DirectoryLock lock(dir.path());
      return true;
    } catch (const Error& error) {
      return std::string(error.what()).find(std::to_string(::getppid())) == std::string::npos;
    }
  };
  {
    const DirectoryLock lock(dir.path());
    EXPECT_FALSE(in_child(can_lock));  // refused, with our process id in the message
  }
  EXPECT_TRUE(in_child(can_lock));
  // A child that dies without unlocking leaves no lock behind.
  const int status = child_status([&] {
    static DirectoryLock held(dir.path());
    ::raise(SIGKILL);
    return true;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it did not get as far as holding the lock";
  EXPECT_TRUE(in_child(can_lock));
}

TEST(File, TruncateAndAppend) {
  const TempDir dir;
  write_text(dir / "a", "0123456789");
  truncate_file(dir / "a", 4);
  FileWriter writer(dir / "a", FileWriter::Mode::kAppend);
  writer.write("xy");
  writer.finish();
  EXPECT_EQ(read_text(dir / "a"), "0123xy");
}

// A FIFO without a writer would keep a reader waiting.
TEST(File, OnlyRegularFilesAreOpened) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  fs::create_symlink(dir / "fifo", dir / "link.png");
  fs::create_symlink("/dev/zero", dir / "device");
  write_text(dir / "file", "text");
  fs::create_symlink(dir / "file", dir / "good");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = (dir / "socket").string();
  ASSERT_LT(name.size(), sizeof(address.sun_path));
  std::copy(name.begin(), name.end(), address.sun_path);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(socket);
  const auto refused = [&](const char* file, const std::string& kind) {
    return in_child([&] {
      ::alarm(10);
      try {
        read_file(dir / file);
      } catch (const Error& error) {
        return error.what() == "[file] expected a file, got " + kind + " (" + (dir / file).string() + ")" &&
               read_start(dir / file, 4).empty();
      }
      return false;
    });
  };
  EXPECT_TRUE(refused("fifo", "a FIFO or pipe"));
  EXPECT_TRUE(refused("link.png", "a FIFO or pipe"));
  EXPECT_TRUE(refused("device", "a device"));
  EXPECT_TRUE(refused("socket", "a socket"));
  EXPECT_EQ(read_file(dir / "good"), "text");
}

TEST(File, NoFileTakesThePlaceOfADeviceOrFifo) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  expect_error(ErrorKind::kUsage, "got a FIFO or pipe", [&] { write_file_atomic(dir / "fifo", "text"); });
  fs::create_symlink("/dev/null", dir / "null");
  expect_error(ErrorKind::kUsage, "got a device", [&] { write_file_atomic(dir / "null", "text"); });
  EXPECT_TRUE(fs::is_fifo(dir / "fifo"));
  EXPECT_TRUE(fs::is_symlink(dir / "null"));
  EXPECT_EQ(entries(dir.path()), 2u) << "nothing is left aside";
}

}  // namespace
}  // namespace onetap
