// The processes of one training and what they tell each other: LibTorch's c10d, with NCCL on GPUs and Gloo on CPUs.
//
// All ranks call the same functions in the same order. What goes wrong is an error on every rank, with a message that
// names the rank that failed or does not answer.
#pragma once

#include "onetap/base/error.h"
#include "onetap/nn/torch.h"
#include "onetap/ranks/rank_place.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace onetap {

// A rank failed or does not answer, as the others see it.
class RankError : public Error {
 public:
  using Error::Error;
};

// A sum under way.
class PendingSum {
 public:
  virtual ~PendingSum() = default;
  // Afterwards the tensor holds the sum; on a GPU, for work that is given to the current stream from now on.
  virtual void wait() = 0;
};

class RankGroup {
 public:
  virtual ~RankGroup() = default;

  const RankPlace& place() const { return place_; }
  int64_t rank() const { return place_.rank; }
  int64_t size() const { return place_.size; }
  bool leads() const { return place_.rank == 0; }
  Part part() const { return {place_.rank, place_.size}; }

  // The text that rank 0 gives, on every rank. Possible before start().
  virtual std::string share(const std::string& text) = 0;
  // Tells the others why this rank is about to end. What they wait for from it fails with these words, and with the
  // same kind of error: whichever rank is asked for its exit code, it is the cause's.
  virtual void leave(ErrorKind kind, const std::string& why) noexcept = 0;

  // Once, before what follows: tensors will be on this device. kUsage if this build has nothing for it.
  virtual void start(torch::Device device) = 0;
  // The sum over all ranks, in place. `tensor` is contiguous and left alone until it has been waited for.
  virtual std::unique_ptr<PendingSum> start_sum(const torch::Tensor& tensor) = 0;
  // Rank 0's values, on every rank.
  virtual void broadcast(const torch::Tensor& tensor) = 0;

  void sum(const torch::Tensor& tensor) { start_sum(tensor)->wait(); }
  std::vector<double> sum(const std::vector<double>& values);
  bool any(bool mine) { return sum({mine ? 1.0 : 0.0})[0] > 0; }

 protected:
  explicit RankGroup(RankPlace place) : place_(std::move(place)) {}

  const RankPlace place_;
  torch::Device device_ = torch::kCPU;
};

// Meets the others where the place says; returns when all are there. `timeout` is for that and for every answer later:
// a rank whose process ended is noticed at once, one whose machine is gone after this time.
std::unique_ptr<RankGroup> meet_ranks(const RankPlace& place, std::chrono::seconds timeout = std::chrono::seconds(300));

}  // namespace onetap
