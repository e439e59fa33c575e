#include "onetap/runtime/thread_pool.h"

#include "onetap/base/fail.h"

#include <algorithm>
#include <system_error>

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

uint32_t round_of(uint64_t ticket) {
  return static_cast<uint32_t>(ticket >> 32);
}

uint32_t parts_of(uint64_t ticket) {
  return static_cast<uint32_t>(ticket);
}

// The first of a worker's own parts; they end where the next one's begin.
int64_t first_part(int64_t parts, int64_t worker, int64_t size) {
  return parts * worker / size;
}

}  // namespace

ThreadPool::ThreadPool(int64_t size) : size_(std::max<int64_t>(1, size)), tickets_(static_cast<size_t>(size_)) {
  threads_.reserve(static_cast<size_t>(size_ - 1));
  try {
    for (int64_t i = 1; i < size_; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& problem) {  // the machine has no more
    const size_t started = threads_.size();
    stop();  // those that there are must end before their handles do
    fail("[runtime] expected {} threads, got {}: {}", size_, started + 1, problem.code().message());
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::take_parts(uint32_t round, int64_t worker, int64_t owner) {
  std::atomic<uint64_t>& place = tickets_[static_cast<size_t>(owner)].value;
  uint64_t ticket = place.load(std::memory_order_acquire);
  while (round_of(ticket) == round && parts_of(ticket) > 0) {
    if (!place.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) continue;
    const Call call = call_.load(std::memory_order_relaxed);
    const int64_t end = first_part(parts_.load(std::memory_order_relaxed), owner + 1, size_);
    call(context_.load(std::memory_order_relaxed), end - parts_of(ticket), worker);
    unfinished_.fetch_sub(1, std::memory_order_release);
    ticket = place.load(std::memory_order_acquire);
  }
}

void ThreadPool::take_all_parts(uint32_t round, int64_t worker) {
  for (int64_t i = 0; i < size_; ++i) take_parts(round, worker, (worker + i) % size_);
}

void ThreadPool::work(int64_t worker) {
  const std::atomic<uint64_t>& own = tickets_[static_cast<size_t>(worker)].value;
  uint32_t seen = 0;
  for (;;) {
    const auto is_news = [&] { return stop_ || round_of(own.load(std::memory_order_acquire)) != seen; };
    for (int spins = 0; spins < kSpins && !is_news(); ++spins) pause_cpu();
    if (!is_news()) {
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleepers_;
      wake_.wait(lock, is_news);
      --sleepers_;
    }
    if (stop_) return;
    seen = round_of(own.load(std::memory_order_acquire));
    take_all_parts(seen, worker);
  }
}

void ThreadPool::run_erased(int64_t parts, Call call, void* context) {
  if (size_ == 1 || parts <= 1) {
    for (int64_t part = 0; part < parts; ++part) call(context, part, 0);
    return;
  }
  const uint32_t round = round_of(tickets_.front().value.load(std::memory_order_relaxed)) + 1;
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  parts_.store(parts, std::memory_order_relaxed);
  unfinished_.store(parts, std::memory_order_relaxed);
  bool asleep = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int64_t owner = 0; owner < size_; ++owner) {
      const int64_t own = first_part(parts, owner + 1, size_) - first_part(parts, owner, size_);
      tickets_[static_cast<size_t>(owner)].value.store(uint64_t{round} << 32 | static_cast<uint32_t>(own),
                                                       std::memory_order_release);
    }
    asleep = sleepers_ > 0;
  }
  if (asleep) wake_.notify_all();
  take_all_parts(round, 0);
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    // On a machine with more threads than CPUs the one waited for may need this CPU.
    spins < kSpins ? pause_cpu() : std::this_thread::yield();
  }
}

}  // namespace onetap
