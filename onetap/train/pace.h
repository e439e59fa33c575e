// How fast a run goes: of this sitting and of its present epoch.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace onetap {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Pace {
 public:
  // After `step` steps and `wall_s` seconds of former sittings.
  void start_sitting(int64_t step, double wall_s) {
    started_ = Clock::now();
    started_step_ = step;
    started_wall_ = wall_s;
  }
  void start_epoch() {
    epoch_started_ = Clock::now();
    images_ = 0;
    waited_ = 0;
  }
  void add_images(int64_t count) { images_ += count; }
  // Seconds of the epoch without a batch to work on, so far.
  void set_waited(double seconds) { waited_ = seconds; }

  // Of all sittings together.
  double wall_s() const { return started_wall_ + seconds_since(started_); }
  // Of the epoch, as far as it was trained in this sitting.
  double images_per_second() const {
    return images_ == 0 ? 0 : static_cast<double>(images_) / seconds_since(epoch_started_);
  }
  double data_wait() const {
    return images_ == 0 ? 0 : std::min(1.0, waited_ / std::max(1e-9, seconds_since(epoch_started_)));
  }
  // From all time spent in this sitting, tests included.
  double seconds_left(int64_t step, int64_t total_steps) const {
    return seconds_since(started_) / static_cast<double>(step - started_step_) *
           static_cast<double>(total_steps - step);
  }

 private:
  Clock::time_point started_, epoch_started_;
  double started_wall_ = 0;
  int64_t started_step_ = 0;
  int64_t images_ = 0;
  double waited_ = 0;
};

}  // namespace onetap
