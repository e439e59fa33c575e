// Runs jobs of a reproduction as processes of this program, each after those it needs.
#pragma once

#include "onetap/reproduce/plan.h"
#include "tools/onetap/processes.h"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace onetap::tool {

struct JobRunnerOptions {
  std::string program;  // instead of this one; empty: this one
  size_t at_a_time = 1;
  std::function<void(const Job& job)> on_done = {};
};

class JobRunner {
 public:
  // Refers to the jobs as long as it lives. What is done already is not started again.
  JobRunner(const std::vector<Job>& jobs, JobRunnerOptions options);

  // Until all that can be done is done, or a signal comes; returns its number or 0.
  int run();

  size_t done() const { return count(State::kDone); }
  size_t failed() const { return count(State::kFailed); }
  // Failed, or after one that did: what they were to be is not there.
  std::vector<std::string> lost() const;

 private:
  enum class State { kWaiting, kRunning, kDone, kFailed, kBlocked, kStopped };

  struct Slot {
    State state = State::kWaiting;
    std::string output = {};    // what it has printed so far
    int64_t epochs_before = 0;  // done when this call began
  };

  size_t count(State state) const;
  // Those that can start now; blocks what waits for something lost.
  bool is_ready(size_t index);
  void start_what_can(Processes& children);
  void start(Processes& children, size_t index);
  void finish(size_t index, const Ending& ending, bool interrupted);
  void show_progress() const;

  const std::vector<Job>& jobs_;
  JobRunnerOptions options_;
  std::vector<Slot> slots_;
  std::map<size_t, size_t> running_;  // of processes, to jobs
  std::chrono::steady_clock::time_point started_;
};

}  // namespace onetap::tool
