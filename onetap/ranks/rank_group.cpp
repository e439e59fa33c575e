#include "onetap/ranks/rank_group.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/ranks/c10d.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace onetap {

std::vector<double> RankGroup::sum(const std::vector<double>& values) {
  const auto host = torch::tensor(at::ArrayRef<double>(values), torch::kFloat64);
  const auto total = host.to(device_, /*non_blocking=*/false, /*copy=*/true);
  sum(total);
  const auto back = total.cpu();
  return {back.data_ptr<double>(), back.data_ptr<double>() + back.numel()};
}

#ifdef ONETAP_HAVE_RANKS
namespace {

using namespace std::chrono_literals;

// How long a rank that has lost another listens for what became of the rest.
constexpr auto kLastWords = 3s;
// How often a rank that waits asks whether another has lost one: it may wait for somebody who is well and waits, too.
constexpr auto kAlarmEvery = std::chrono::milliseconds(500);
constexpr const char* kAlarm = "alarm";

// c10d's messages go on with a backtrace, and Gloo's begin with where in its sources they come from.
std::string first_line(const std::exception& problem) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&problem);
  const std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : problem.what();
  const std::string line = text.substr(0, text.find('\n'));
  const size_t end = line.find("] "), source = line.substr(0, end).find(".cc:");
  return line[0] != '[' || source == std::string::npos ? line : line.substr(end + 2);
}

std::string end_key(int64_t rank) {
  return fmt::format("end/{}", rank);
}

// What a rank leaves behind: the kind of its error as one character, and its message. Nothing from one that only lost
// another.
[[noreturn]] void fail_like(int64_t rank, const std::string& words) {
  throw RankError(static_cast<ErrorKind>(words.at(0) - '0'),
                  fmt::format("[ranks] rank {} failed: {}", rank, words.substr(1)));
}

template <typename... Args>
[[noreturn]] void fail_ranks(fmt::format_string<Args...> format, Args&&... args) {
  throw RankError(ErrorKind::kFailure, fmt::format(format, std::forward<Args>(args)...));
}

class C10dGroup;

class C10dSum : public PendingSum {
 public:
  C10dSum(C10dGroup& group, c10::intrusive_ptr<CollectiveWork> work, torch::Tensor tensor)
      : group_(group), work_(std::move(work)), tensor_(std::move(tensor)) {}
  void wait() override;

 private:
  C10dGroup& group_;
  c10::intrusive_ptr<CollectiveWork> work_;
  torch::Tensor tensor_;  // must live as long as the work
};

class C10dGroup : public RankGroup {
 public:
  C10dGroup(const RankPlace& place, std::chrono::milliseconds timeout) : RankGroup(place), timeout_(timeout) { meet(); }

  // c10d's end waits for sums under way, which after a failure nobody answers: then it is left to the process's end.
  ~C10dGroup() override {
    if (told_) backend_.release();
#if ONETAP_TORCH_AT_LEAST(2, 6)
    if (backend_) backend_->shutdown();  // NCCL complains otherwise
#endif
  }

  std::string share(const std::string& text) override {
    const std::string key = fmt::format("shared/{}", shared_++);
    return guarded([&]() -> std::string {
      if (leads()) {
        store_->set(key, std::vector<uint8_t>(text.begin(), text.end()));
        return text;
      }
      const auto end = std::chrono::steady_clock::now() + timeout_;
      while (!store_->check({key})) {
        if (store_->check({kAlarm})) throw std::runtime_error("another rank gave up");
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error("no answer in time");
        std::this_thread::sleep_for(20ms);
      }
      return read(key);
    });
  }

  void leave(ErrorKind kind, const std::string& why) noexcept override {
    try {
      if (told_) return;
      say(std::to_string(static_cast<int>(kind)) + why);
      if (!leads()) return;
      // The words go with the store: the others must have read them first.
      listen([](int64_t, const std::string&) { return false; });
    } catch (const std::exception&) {  // then there is nobody to tell
    }
  }

  void start(torch::Device device) override {
    device_ = device;
    guarded([&] { backend_ = device.is_cuda() ? make_nccl() : make_gloo(); });
    sum({0.0});  // connections are made now, not in the first step
  }

  std::unique_ptr<PendingSum> start_sum(const torch::Tensor& tensor) override {
    return guarded([&]() -> std::unique_ptr<PendingSum> {
      std::vector<torch::Tensor> tensors = {tensor};
      return std::make_unique<C10dSum>(*this, backend_->allreduce(tensors), tensor);
    });
  }

  void broadcast(const torch::Tensor& tensor) override {
    guarded([&] {
      const torch::NoGradGuard no_grad;
      // In plain order: ranks may hold it in different memory layouts.
      std::vector<torch::Tensor> tensors = {tensor.detach().contiguous()};
      wait(*backend_->broadcast(tensors));
      if (!leads() && !tensors[0].is_same(tensor)) tensor.detach().copy_(tensors[0]);
    });
  }

  // Does something with the others; where that fails, finds out who is missing.
  template <typename Work>
  auto guarded(const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& problem) {
      explain(first_line(problem));
    }
  }

  void wait(CollectiveWork& work) {
    if (device_.is_cuda()) {  // the stream waits, not the host
      work.wait();
      return;
    }
    for (;;) {
      try {
        work.wait(kAlarmEvery);
        return;
      } catch (const std::exception&) {
        if (work.isCompleted()) throw;
      }
      if (store_->check({kAlarm})) throw std::runtime_error("another rank gave up");
    }
  }

 private:
  void meet() {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(place_.port);
    options.isServer = leads();
    options.numWorkers = static_cast<size_t>(place_.size);
    options.waitWorkers = false;
    options.timeout = timeout_;
    const std::string where = fmt::format("{}:{}", place_.master, place_.port);
    try {
      c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::TCPStore>(place_.master, options);
      store_ = c10::make_intrusive<c10d::PrefixStore>("onetap", store);
      store_->add("here", 1);
    } catch (const std::exception& problem) {
      fail("[ranks] rank {} of {} cannot {} {}: {}", rank(), size(), leads() ? "listen at" : "reach rank 0 at", where,
           first_line(problem));
    }
    const auto end = std::chrono::steady_clock::now() + timeout_;
    while (store_->add("here", 0) < size()) {
      if (std::chrono::steady_clock::now() > end) {
        fail("[ranks] expected {} ranks at {}, got {} within {} s", size(), where, store_->add("here", 0),
             timeout_.count() / 1000);
      }
      std::this_thread::sleep_for(20ms);
    }
  }

  c10::intrusive_ptr<CollectiveBackend> make_gloo() {
#ifdef ONETAP_HAVE_GLOO
    using Gloo = c10d::ProcessGroupGloo;
    auto options = Gloo::Options::create(timeout_);
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    // On one machine by the loopback, whatever its name resolves to.
    const bool here = place_.master == "127.0.0.1" || place_.master == "localhost";
    options->devices.push_back(interface != nullptr ? Gloo::createDeviceForInterface(interface)
                               : here               ? Gloo::createDeviceForHostname("127.0.0.1")
                                                    : Gloo::createDefaultDevice());
    const auto store = c10::make_intrusive<c10d::PrefixStore>("gloo", store_);
    return c10::make_intrusive<Gloo>(store, static_cast<int>(rank()), static_cast<int>(size()), options);
#else
    fail_usage("[ranks] this build has no Gloo, for ranks on CPUs: libgloo's headers were not found");
#endif
  }

  c10::intrusive_ptr<CollectiveBackend> make_nccl() {
#ifdef ONETAP_HAVE_NCCL
    using Nccl = c10d::ProcessGroupNCCL;
    const c10::cuda::CUDAGuard guard(device_);
    auto options = Nccl::Options::create();
    options->timeout = timeout_;
    const auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", store_);
    return c10::make_intrusive<Nccl>(store, static_cast<int>(rank()), static_cast<int>(size()), options);
#else
    fail_usage("[ranks] this build has no NCCL, for ranks on GPUs: it needs -DONETAP_CUDA=ON and NCCL's header");
#endif
  }

  std::string read(const std::string& key) {
    const auto bytes = store_->get(key);
    return {bytes.begin(), bytes.end()};
  }

  // Reads the last words of the others as they come, until one is `enough` or all are there; returns who said nothing.
  template <typename Enough>
  std::vector<int64_t> listen(const Enough& enough) {
    std::vector<int64_t> silent;
    for (int64_t other = 0; other < size(); ++other) {
      if (other != rank()) silent.push_back(other);
    }
    const auto end = std::chrono::steady_clock::now() + kLastWords;
    while (!silent.empty() && std::chrono::steady_clock::now() < end) {
      for (size_t i = silent.size(); i-- > 0;) {
        if (!store_->check({end_key(silent[i])})) continue;
        if (enough(silent[i], read(end_key(silent[i])))) return silent;
        silent.erase(silent.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (!silent.empty()) std::this_thread::sleep_for(20ms);
    }
    return silent;
  }

  void say(const std::string& words) {
    told_ = true;
    store_->set(end_key(rank()), std::vector<uint8_t>(words.begin(), words.end()));
    store_->set(kAlarm, std::vector<uint8_t>(1));
  }

  [[noreturn]] void explain(const std::string& problem) {
    int64_t failed = -1;
    std::string words;
    std::vector<int64_t> silent;
    try {
      if (!told_) say("");
      silent = listen([&](int64_t other, const std::string& text) {
        failed = other;
        words = text;
        return !text.empty();
      });
    } catch (const std::exception&) {
      fail_ranks("[ranks] rank 0, to which all ranks connect, does not answer ({})", problem);
    }
    if (!words.empty()) fail_like(failed, words);
    if (silent.empty()) fail_ranks("[ranks] the connection between the ranks was lost ({})", problem);
    std::vector<std::string> names;
    for (const int64_t other : silent) names.push_back(std::to_string(other));
    const bool one = silent.size() == 1;
    fail_ranks("[ranks] {} {} of {} {} not answer ({})", one ? "rank" : "ranks", join(names, " and "), size(),
               one ? "does" : "do", problem);
  }

  const std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<CollectiveBackend> backend_;
  int64_t shared_ = 0;
  bool told_ = false;
};

void C10dSum::wait() {
  group_.guarded([&] { group_.wait(*work_); });
}

}  // namespace

std::unique_ptr<RankGroup> meet_ranks(const RankPlace& place, std::chrono::seconds timeout) {
#ifndef C10_USE_GLOG
  // c10d warns with a backtrace of what our messages say, too.
  FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, 2);
#endif
  return std::make_unique<C10dGroup>(place, timeout);
}
#else
std::unique_ptr<RankGroup> meet_ranks(const RankPlace& place, std::chrono::seconds) {
  fail_usage("[ranks] expected one process, got {}: this build has neither Gloo nor NCCL", place.size);
}
#endif

}  // namespace onetap
