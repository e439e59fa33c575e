#include "tools/onetap/child.h"

#include "onetap/base/fail.h"
#include "tools/onetap/missing_peer.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace onetap::tool {

Child::Child(const std::vector<std::string>& words) {
  // A child that ended must show as an error of writing, not end us.
  std::signal(SIGPIPE, SIG_IGN);
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0)
    fail("[bench] cannot make a pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int problem = ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  to_ = ::fdopen(in[1], "w");
  from_ = ::fdopen(out[0], "r");
  if (problem != 0) {
    pid_ = -1;
    std::fclose(to_);
    std::fclose(from_);
    if (problem == ENOENT || problem == EACCES) {
      throw MissingPeer(fmt::format("[bench] expected the program {}, got: {}", words[0], std::strerror(problem)));
    }
    fail("[bench] cannot start {}: {}", words[0], std::strerror(problem));
  }
}

Child::~Child() {
  std::fclose(to_);
  std::fclose(from_);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

void Child::write_line(const std::string& line) {
  std::fputs((line + "\n").c_str(), to_);
  std::fflush(to_);
}

std::string Child::read_line() {
  std::string line;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) line += static_cast<char>(c);
  return line;
}

}  // namespace onetap::tool
