#include "tools/onetap/job_runner.h"

#include "onetap/base/file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/last_words.h"
#include "tools/onetap/sweep_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace onetap::tool {
namespace {

using Clock = std::chrono::steady_clock;

int64_t epochs_done(const Job& job) {
  const auto scores = read_scores(job.run.files());
  return scores ? scores->epochs : 0;
}

// What it prints is its result; others print for people, which goes to the log.
bool prints_result(const Job& job) {
  return job.kind == Job::Kind::kEvaluate || job.kind == Job::Kind::kRound || job.kind == Job::Kind::kTime;
}

// What ends without words of its own (it was killed, or is another program) failed all the same: tables look for the
// last line of a log.
void note_in_log(const std::filesystem::path& log, const std::string& problem) {
  if (last_words(log).rfind("onetap: ", 0) == 0) return;
  std::string text;
  try {
    text = read_file(log);
  } catch (const Error&) {
    // There may be none yet.
  }
  const char* begin = text.empty() || text.back() == '\n' ? "" : "\n";
  std::ofstream(log, std::ios::app) << begin << "onetap: " << problem << '\n';
}

}  // namespace

JobRunner::JobRunner(const std::vector<Job>& jobs, JobRunnerOptions options)
    : jobs_(jobs), options_(std::move(options)), slots_(jobs.size()) {
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].is_done()) slots_[i].state = State::kDone;
    if (jobs_[i].kind == Job::Kind::kTrain) slots_[i].epochs_before = epochs_done(jobs_[i]);
  }
}

size_t JobRunner::count(State state) const {
  return static_cast<size_t>(
      std::count_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.state == state; }));
}

std::vector<std::string> JobRunner::lost() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (slots_[i].state == State::kFailed || slots_[i].state == State::kBlocked) names.push_back(jobs_[i].name);
  }
  return names;
}

int JobRunner::run() {
  Processes children;
  started_ = Clock::now();
  while (true) {
    if (children.interrupted_by() == 0) start_what_can(children);
    if (children.running() == 0) break;
    if (console().shows_progress()) show_progress();
    const Processes::Event event = children.wait(std::chrono::milliseconds(500));
    if (event.kind == Processes::Event::Kind::kEnded) {
      finish(running_.at(event.id), event.ending, children.interrupted_by() != 0);
      running_.erase(event.id);
    }
    if (event.kind == Processes::Event::Kind::kInterrupted) {
      console().note("stopping the runs, with checkpoints (a second signal stops them at once)");
    }
  }
  console().clear_progress();
  return children.interrupted_by();
}

bool JobRunner::is_ready(size_t index) {
  Slot& slot = slots_[index];
  if (slot.state != State::kWaiting) return false;
  for (const size_t needed : jobs_[index].after) {
    const State state = slots_[needed].state;
    if (state == State::kFailed || state == State::kBlocked) slot.state = State::kBlocked;
    if (state != State::kDone) return false;
  }
  return true;
}

void JobRunner::start_what_can(Processes& children) {
  // Times are taken alone: other work on the machine would be in them.
  const auto is_timing = [&](const auto& entry) { return jobs_[entry.second].kind == Job::Kind::kTime; };
  if (std::any_of(running_.begin(), running_.end(), is_timing)) return;
  for (size_t i = 0; i < jobs_.size() && children.running() < options_.at_a_time; ++i) {
    if (is_ready(i) && jobs_[i].kind != Job::Kind::kTime) start(children, i);
  }
  for (size_t i = 0; i < jobs_.size() && children.running() == 0; ++i) {
    if (is_ready(i)) start(children, i);
  }
}

void JobRunner::start(Processes& children, size_t index) {
  const Job& job = jobs_[index];
  make_directories(job.log.parent_path());
  if (job.kind == Job::Kind::kCut) make_directories(job.output.parent_path().parent_path());
  Command command{options_.program, job.arguments};
  command.out = command.err = Sink::kLog;
  command.log = job.log;
  if (prints_result(job)) {
    command.out = Sink::kLines;
    command.on_line = [this, index](std::string_view line) { slots_[index].output.append(line).append("\n"); };
  }
  console().detail(fmt::format("{}: {}", job.name, job.run.files().holds_run() ? "resumes" : "starts"));
  slots_[index].output.clear();
  running_[children.start(command)] = index;
  slots_[index].state = State::kRunning;
}

void JobRunner::finish(size_t index, const Ending& ending, bool interrupted) {
  const Job& job = jobs_[index];
  Slot& slot = slots_[index];
  std::string problem;
  if (ending.failed()) {
    problem = fmt::format("{}: {}", ending.text(), last_words(job.log));
  } else {
    try {
      if (prints_result(job)) write_file_atomic(job.output, slot.output);
      if (!job.is_done()) {
        problem = job.kind == Job::Kind::kTrain
                      ? fmt::format("ended without its last test on record: move {} away to train it again",
                                    job.run.directory.string())
                      : "ended without a result";
      }
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  if (problem.empty()) {
    slot.state = State::kDone;
    const auto scores = job.kind == Job::Kind::kTrain ? read_scores(job.run.files()) : std::nullopt;
    console().note(scores
                       ? fmt::format("{}: {}, {}", job.name, percent_text(scores->acc_hard.value_or(scores->acc_soft)),
                                     duration_text(scores->wall_s))
                       : job.name + ": done");
  } else if (interrupted) {
    slot.state = State::kStopped;
  } else {
    slot.state = State::kFailed;
    note_in_log(job.log, ending.failed() ? ending.text() : problem);
    console().warn(fmt::format("{} {} ({})", job.name, problem, job.log.string()));
  }
  if (options_.on_done) options_.on_done(job);
}

void JobRunner::show_progress() const {
  int64_t total = 0, done = 0, before = 0;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const State state = slots_[i].state;
    if (jobs_[i].kind != Job::Kind::kTrain || state == State::kFailed || state == State::kBlocked) continue;
    total += jobs_[i].run.epochs;
    before += slots_[i].epochs_before;
    done += state == State::kDone      ? jobs_[i].run.epochs
            : state == State::kRunning ? epochs_done(jobs_[i])
                                       : slots_[i].epochs_before;
  }
  const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
  const auto now = static_cast<double>(done - before);
  const std::string eta =
      now > 0 ? "ETA " + duration_text(elapsed / now * static_cast<double>(total - done)) : "ETA after an epoch";
  console().progress(fmt::format("{} of {} jobs done, {} running, {} failed  epoch {}/{}  {}", count(State::kDone),
                                 jobs_.size(), count(State::kRunning), failed(), done, total, eta));
}

}  // namespace onetap::tool
