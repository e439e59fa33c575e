#include "tools/onetap/processes.h"

#include "onetap/base/fail.h"

#include <climits>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

constexpr size_t kLongestLine = 1u << 16;  // a longer one is passed on in parts

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void close() {
    if (number_ >= 0) ::close(release());
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor read_end, write_end;

  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("[process] cannot make a pipe: {}", std::strerror(errno));
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
  }
};

Descriptor open_file(const fs::path& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (file.get() < 0) fail("[process] cannot open {}: {}", path.string(), std::strerror(errno));
  return file;
}

// By its own name, as lists of processes show it; the link serves when a newer program has taken that name's place.
std::string this_program() {
  const char* const link = "/proc/self/exe";
  std::error_code error;
  const fs::path path = fs::read_symlink(link, error);
  return !error && fs::exists(path, error) ? path.string() : link;
}

// "NAME=value" of our environment with some of them replaced.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (changes.count(text.substr(0, text.find('='))) == 0) entries.push_back(text);
  }
  for (const auto& [name, value] : changes) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// All that happens between fork and exec, prepared ahead: other threads of ours may have held locks.
struct Launch {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const sigset_t* mask;
  pid_t parent;
  int in, out, err;  // -1 for ours
  int problem;       // gets errno if the program cannot be started

  [[noreturn]] void become() const {
    ::setpgid(0, 0);
    // If we are killed, nothing is left that could end the process: the kernel does. It may have happened already.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const auto put = [](int from, int to) { return from < 0 || ::dup2(from, to) >= 0; };
    if (put(in, STDIN_FILENO) && put(out, STDOUT_FILENO) && put(err, STDERR_FILENO)) {
      // Its group is in the background of the terminal, which may be set to stop those who write.
      std::signal(SIGTTOU, SIG_IGN);
      std::signal(SIGXFSZ, SIG_DFL);  // what we ignore is our own affair
      ::sigprocmask(SIG_SETMASK, mask, nullptr);
      ::execvpe(program, arguments, environment);
    }
    const int reason = errno;
    (void)!::write(problem, &reason, sizeof(reason));
    ::_exit(127);
  }
};

}  // namespace

std::string Ending::text() const {
  return signal != 0 ? fmt::format("was ended by signal {} ({})", signal, ::strsignal(signal))
                     : fmt::format("ended with exit code {}", exit_code);
}

Processes::Processes() {
  sigset_t mask;
  ::sigemptyset(&mask);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGTSTP}) ::sigaddset(&mask, number);
  struct sigaction hangup {};  // blocked, it would reach us though nohup has it ignored
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) ::sigaddset(&mask, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &mask, &former_mask_);
  signals_ = ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) fail("[process] cannot watch signals: {}", std::strerror(errno));
}

Processes::~Processes() {
  tell_groups(SIGKILL);
  for (Process& process : processes_) {
    if (process.pid > 0) ::waitpid(process.pid, nullptr, 0);
    if (process.lines >= 0) ::close(process.lines);
  }
  ::close(signals_);
  ::sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
}

size_t Processes::start(const Command& command) {
  const std::string program = command.program.empty() ? this_program() : command.program;
  std::vector<std::string> words = {program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment = environment_with(command.environment);
  const std::vector<char*> argv = pointers(words), envp = pointers(environment);

  const auto uses = [&](Sink sink) { return command.out == sink || command.err == sink; };
  const Descriptor nothing = open_file("/dev/null", O_RDWR);
  const Descriptor log = uses(Sink::kLog) ? open_file(command.log, O_WRONLY | O_CREAT | O_APPEND) : Descriptor();
  Pipe lines, problem;
  const auto target = [&](Sink sink) {
    if (sink == Sink::kOurs) return -1;
    return sink == Sink::kNowhere ? nothing.get() : sink == Sink::kLog ? log.get() : lines.write_end.get();
  };
  const Launch launch{program.c_str(), argv.data(),         envp.data(),         &former_mask_,          ::getpid(),
                      nothing.get(),   target(command.out), target(command.err), problem.write_end.get()};
  const pid_t pid = ::fork();
  if (pid < 0) fail("[process] cannot start {}: {}", program, std::strerror(errno));
  if (pid == 0) launch.become();
  // Here as well as there: whichever comes first, the group exists before we signal it.
  ::setpgid(pid, pid);
  lines.write_end.close();
  problem.write_end.close();
  int reason = 0;
  if (::read(problem.read_end.get(), &reason, sizeof(reason)) == sizeof(reason)) {
    ::waitpid(pid, nullptr, 0);
    fail_usage("[process] cannot start {}: {}", program, std::strerror(reason));
  }
  Process process;
  process.pid = pid;
  if (uses(Sink::kLines)) {
    process.lines = lines.read_end.release();
    ::fcntl(process.lines, F_SETFL, O_NONBLOCK);
    process.on_line = command.on_line;
  }
  processes_.push_back(std::move(process));
  return processes_.size() - 1;
}

size_t Processes::running() const {
  const auto lives = [](const Process& process) { return process.pid > 0; };
  const auto is_end = [](const Event& event) { return event.kind == Event::Kind::kEnded; };
  return static_cast<size_t>(std::count_if(processes_.begin(), processes_.end(), lives) +
                             std::count_if(events_.begin(), events_.end(), is_end));
}

Processes::Event Processes::wait(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (events_.empty()) {
    const auto now = Clock::now();
    if (now >= kill_at_) {
      tell_groups(SIGKILL);
      kill_at_ = Clock::time_point::max();
    }
    if (now >= end) return {};
    poll_once(std::chrono::ceil<std::chrono::milliseconds>(std::min(end, kill_at_) - now));
  }
  const Event event = events_.front();
  events_.pop_front();
  return event;
}

void Processes::tell(int signal_number) const {
  for (const Process& process : processes_) {
    if (process.pid > 0) ::kill(process.pid, signal_number);
  }
}

void Processes::kill_after(std::chrono::milliseconds patience) {
  kill_at_ = Clock::now() + patience;
}

void Processes::poll_once(std::chrono::milliseconds limit) {
  std::vector<pollfd> watched = {{signals_, POLLIN, 0}};
  std::vector<size_t> owners;
  for (size_t id = 0; id < processes_.size(); ++id) {
    if (processes_[id].lines < 0) continue;
    watched.push_back({processes_[id].lines, POLLIN, 0});
    owners.push_back(id);
  }
  const auto milliseconds = static_cast<int>(std::min<int64_t>(limit.count(), INT_MAX));
  if (::poll(watched.data(), watched.size(), milliseconds) <= 0) return;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (watched[i + 1].revents != 0) read_some(processes_[owners[i]]);
  }
  if (watched[0].revents != 0) take_signals();
}

void Processes::take_signals() {
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof(info)) == sizeof(info)) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      reap();
    } else if (number == SIGTSTP) {
      suspend();
    } else {
      if (interrupted_by_ == 0) {
        interrupted_by_ = number;
        tell(number);
      } else if (number == SIGHUP) {
        continue;  // the end of a terminal is told twice: by the shell and by the kernel
      } else {
        tell_groups(SIGKILL);
      }
      events_.push_back({Event::Kind::kInterrupted});
    }
  }
}

void Processes::reap() {
  for (size_t id = 0; id < processes_.size(); ++id) {
    Process& process = processes_[id];
    int status = 0;
    if (process.pid <= 0 || ::waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
    process.pid = -1;
    // A process of its own may still hold the other end: what is there is taken, nothing is waited for.
    while (read_some(process)) continue;
    close_lines(process);
    Event event{Event::Kind::kEnded, id};
    if (WIFSIGNALED(status)) {
      event.ending.signal = WTERMSIG(status);
    } else {
      event.ending.exit_code = WEXITSTATUS(status);
    }
    events_.push_back(event);
  }
}

// Ctrl-Z: the others, being in groups of their own, stop and go on with us.
void Processes::suspend() {
  tell_groups(SIGSTOP);
  ::raise(SIGSTOP);
  tell_groups(SIGCONT);
}

void Processes::tell_groups(int signal_number) const {
  for (const Process& process : processes_) {
    if (process.pid > 0) ::kill(-process.pid, signal_number);
  }
}

bool Processes::read_some(Process& process) {
  char bytes[4096];
  const ssize_t count = process.lines < 0 ? -1 : ::read(process.lines, bytes, sizeof(bytes));
  if (count == 0) close_lines(process);
  if (count <= 0) return false;
  for (const char c : std::string_view(bytes, static_cast<size_t>(count))) {
    if (c != '\n') process.partial_line += c;
    if (c == '\n' || process.partial_line.size() >= kLongestLine) {
      process.on_line(process.partial_line);
      process.partial_line.clear();
    }
  }
  return true;
}

void Processes::close_lines(Process& process) {
  if (process.lines < 0) return;
  if (!process.partial_line.empty()) process.on_line(process.partial_line);
  process.partial_line.clear();
  ::close(std::exchange(process.lines, -1));
}

}  // namespace onetap::tool
