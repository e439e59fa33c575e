// A few threads that do one thing at a time together. No global state: every pool is its owner's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace onetap {

class ThreadPool {
 public:
  // `size` threads, the caller of run() being one of them.
  explicit ThreadPool(int64_t size);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int64_t size() const { return size_; }

  // Calls work(part, worker) for every part in 0 .. parts - 1 and returns when all have ended; worker, 0 .. size() - 1,
  // tells the threads apart. Every worker has an equal run of neighbouring parts of its own, the same in every call of
  // as many parts, so that what it wrote in one is in its cache in the next; then it helps the others. A thread that
  // the system is late to wake takes no part, and nobody waits for it. Allocates nothing. `work` must not throw, and
  // one thread at a time may call run().
  template <typename Work>
  void run(int64_t parts, Work&& work) {
    const Call call = [](void* context, int64_t part, int64_t worker) {
      (*static_cast<std::remove_reference_t<Work>*>(context))(part, worker);
    };
    run_erased(parts, call, &work);
  }

 private:
  using Call = void (*)(void* context, int64_t part, int64_t worker);

  void run_erased(int64_t parts, Call call, void* context);
  void take_parts(uint32_t round, int64_t worker, int64_t owner);
  void take_all_parts(uint32_t round, int64_t worker);
  void work(int64_t worker);
  void stop();

  int64_t size_;
  std::vector<std::thread> threads_;

  // Of one worker's own parts: the round's number above, how many are not yet taken below. To take a part is to count
  // it down: whoever does so while the round is current may read the job, for run() does not return, and so does not
  // change it, before that part ends. A line each, since their owners count all the time.
  struct alignas(64) Ticket {
    std::atomic<uint64_t> value{0};
  };
  std::vector<Ticket> tickets_;
  std::atomic<int64_t> parts_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int64_t> unfinished_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // for those who have waited long enough to sleep
  std::condition_variable wake_;
  int64_t sleepers_ = 0;
};

}  // namespace onetap
