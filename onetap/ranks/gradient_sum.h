// Gradients added up over ranks while the backward pass is still under way.
#pragma once

#include "onetap/ranks/rank_group.h"

#include <memory>
#include <vector>

namespace onetap {

// Several gradients travel together: messages of some megabytes keep a network busy, and leave enough of the backward
// pass to hide behind.
constexpr int64_t kBucketBytes = int64_t{4} << 20;

// Gradients in 32 bits, in buckets that are sent one after the other in the same order on every rank, each as soon as
// it is full.
class GradientSum {
 public:
  // `sizes`: how many numbers each gradient has, in the order in which a backward pass gives them (about).
  GradientSum(RankGroup& group, const std::vector<int64_t>& sizes, torch::Device device,
              int64_t bucket_bytes = kBucketBytes);

  // This rank's gradient; each at most once before finish().
  void add(size_t index, const torch::Tensor& gradient);
  // Waits for all sums; of what was not added, this rank's share is zero.
  void finish();
  // After finish() and until the next add(): a flat view of the sum.
  torch::Tensor sum(size_t index) const;

  size_t buckets() const { return buckets_.size(); }

 private:
  struct Bucket {
    torch::Tensor flat;
    std::vector<size_t> slots;
    size_t missing = 0;
    std::unique_ptr<PendingSum> pending;
  };
  struct Slot {
    size_t bucket = 0;
    int64_t first = 0, count = 0;
    bool added = false;
  };

  void send_full_ones();

  RankGroup& group_;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  size_t sent_ = 0;
};

// The gradients of parameters that LibTorch's autograd trains.
class ParameterGradients {
 public:
  // In the order of the network; backward passes give them the other way round.
  ParameterGradients(RankGroup& group, const std::vector<torch::Tensor>& parameters,
                     int64_t bucket_bytes = kBucketBytes);
  ~ParameterGradients();
  ParameterGradients(const ParameterGradients&) = delete;
  ParameterGradients& operator=(const ParameterGradients&) = delete;

  // Before the (last) backward pass of a step: what it leaves in grad() is sent as it comes.
  void begin();
  // After it: every grad() is the sum over ranks.
  void finish();

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace onetap
