#include "onetap/runtime/team.h"

#include <algorithm>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace onetap {
namespace {

// Between two layers there are microseconds, between two calls of a user anything: so long a worker spins before it
// sleeps.
constexpr int kSpins = 20000;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Team::Team(int64_t size) : size_(std::max<int64_t>(1, size)) {
  threads_.reserve(static_cast<size_t>(size_ - 1));
  try {
    for (int64_t i = 1; i < size_; ++i) threads_.emplace_back([this] { worker(); });
  } catch (...) {  // the machine has no more: those that there are must end before their handles do
    stop();
    throw;
  }
}

Team::~Team() {
  stop();
}

void Team::stop() {
  stop_ = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++round_;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::take_parts() {
  for (int64_t part = next_++; part < parts_; part = next_++) call_(context_, part);
}

void Team::worker() {
  uint64_t seen = 0;
  for (;;) {
    int spins = 0;
    while (round_.load(std::memory_order_acquire) == seen) {
      if (++spins < kSpins) {
        pause_cpu();
        continue;
      }
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleepers_;
      wake_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
      --sleepers_;
    }
    ++seen;
    if (stop_) return;
    take_parts();
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

// Every worker takes part in every round, if only to see that nothing is left: that is what lets the next round reuse
// the job's fields.
void Team::run_erased(int64_t parts, Call call, void* context) {
  if (size_ == 1 || parts <= 1) {
    for (int64_t part = 0; part < parts; ++part) call(context, part);
    return;
  }
  call_ = call;
  context_ = context;
  parts_ = parts;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(size_ - 1, std::memory_order_relaxed);
  bool asleep = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    round_.fetch_add(1, std::memory_order_release);
    asleep = sleepers_ > 0;
  }
  if (asleep) wake_.notify_all();
  take_parts();
  int spins = 0;
  while (busy_.load(std::memory_order_acquire) != 0) {
    // On a machine with more threads than CPUs the one waited for may need this CPU.
    if (++spins < kSpins) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace onetap
