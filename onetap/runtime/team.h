// A few threads that do one thing at a time together. No global state: every team is its owner's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace onetap {

class Team {
 public:
  // `size` threads, the caller of run() being one of them.
  explicit Team(int64_t size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int64_t size() const { return size_; }

  // Calls work(0) .. work(parts - 1), at most size() of them at once, and returns when all have ended. Allocates
  // nothing. `work` must not throw, and one thread at a time may call run().
  template <typename Work>
  void run(int64_t parts, Work&& work) {
    run_erased(
        parts, [](void* context, int64_t part) { (*static_cast<std::remove_reference_t<Work>*>(context))(part); },
        &work);
  }

 private:
  using Call = void (*)(void* context, int64_t part);

  void run_erased(int64_t parts, Call call, void* context);
  void take_parts();
  void stop();
  void worker();

  int64_t size_;
  std::vector<std::thread> threads_;

  // The job: written by run() before `round_` moves on, read by workers after they saw it move.
  Call call_ = nullptr;
  void* context_ = nullptr;
  int64_t parts_ = 0;
  std::atomic<int64_t> next_{0};  // part to take
  std::atomic<int64_t> busy_{0};  // workers that have not yet left this round
  std::atomic<uint64_t> round_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // for those who have waited long enough to sleep
  std::condition_variable wake_;
  int64_t sleepers_ = 0;
};

}  // namespace onetap
