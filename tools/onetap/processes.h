// Processes of ours that are watched, interrupted and ended together.
#pragma once

#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace onetap::tool {

// Where a process's output goes.
enum class Sink { kOurs, kNowhere, kLines, kLog };

struct Command {
  std::string program;                                  // found on PATH; empty means this program
  std::vector<std::string> arguments;                   // after the program's name
  std::map<std::string, std::string> environment = {};  // over ours
  Sink out = Sink::kOurs;
  Sink err = Sink::kOurs;
  std::function<void(std::string_view)> on_line = {};  // for kLines, without the line's end
  std::filesystem::path log = {};                      // for kLog, which appends
};

// How a process ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;  // that ended it, or 0

  bool failed() const { return exit_code != 0 || signal != 0; }
  // "ended with exit code 4", "was ended by signal 9 (Killed)"
  std::string text() const;
};

// Each has a process group of its own: Ctrl-C in a terminal reaches us alone, and we pass it on once. None outlives us,
// however we end.
class Processes {
 public:
  struct Event {
    enum class Kind {
      kNothing,      // time passed
      kEnded,        // the process `id` did, as `ending` says
      kInterrupted,  // we got SIGINT, SIGTERM or SIGHUP: passed on to all the first time, SIGKILL for all the second
                     // (not of SIGHUP)
    };
    Kind kind = Kind::kNothing;
    size_t id = 0;
    Ending ending = {};
  };

  // Until it is destroyed, signals wait for wait().
  Processes();
  // Kills what still runs.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Returns an id, counted from 0. kUsage if there is no such program.
  size_t start(const Command& command);
  // Those whose end wait() has not told yet.
  size_t running() const;

  // The next event, after what the processes wrote before it went to their on_line; nothing after `limit`.
  Event wait(std::chrono::milliseconds limit);

  // Sends a signal to all that run.
  void tell(int signal_number) const;
  // What still runs after this time is killed.
  void kill_after(std::chrono::milliseconds patience);

  // The first of SIGINT, SIGTERM and SIGHUP that we got, or 0.
  int interrupted_by() const { return interrupted_by_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Process {
    pid_t pid = -1;  // -1 once it has ended
    int lines = -1;  // descriptor that kLines are read from
    std::string partial_line = {};
    std::function<void(std::string_view)> on_line = {};
  };

  void poll_once(std::chrono::milliseconds limit);
  void take_signals();
  void reap();
  void suspend();
  void tell_groups(int signal_number) const;
  // False if there was nothing to read.
  static bool read_some(Process& process);
  static void close_lines(Process& process);

  std::vector<Process> processes_;
  std::deque<Event> events_;
  sigset_t former_mask_;
  int signals_ = -1;
  int interrupted_by_ = 0;
  Clock::time_point kill_at_ = Clock::time_point::max();
};

}  // namespace onetap::tool
