// A rank's part in a training; one process alone is a training of one part.
#pragma once

#include "onetap/journal/run_state.h"
#include "onetap/nn/graph_module.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/ranks/gradient_sum.h"
#include "onetap/recipe/recipe.h"

#include <memory>

namespace onetap {

// Of the images of one step, or of several processes' share of it.
struct StepTotals {
  double loss = 0;  // sum over images
  int64_t right = 0;
  int64_t images = 0;
  bool stop = false;  // somebody asked for it
};

class RankShare {
 public:
  // `group` may be null, and must outlive this.
  explicit RankShare(RankGroup* group) : group_(group) {}

  RankGroup* group() const { return group_; }
  bool leads() const { return group_ == nullptr || group_->leads(); }
  Part part() const { return group_ == nullptr ? Part() : group_->part(); }
  bool several() const { return group_ != nullptr && group_->size() > 1; }

  // kUsage unless every batch has an image for every rank, and where ranks meet in every part of a step, for each part.
  void check_batches(const Recipe& recipe, int64_t images) const;
  // kData if the ranks see data of different sizes.
  void check_data(int64_t train_images, int64_t test_images) const;

  // Rank 0's, on every rank.
  RunState spread(const RunState& state) const;
  void spread(const nn::NamedTensors& tensors) const;
  // Rank 0's network with its tensors, on this rank's device; `mine` of other ranks may be null.
  nn::GraphModule spread_network(const nn::GraphModule& mine, torch::Device device) const;
  // Rank 0's running statistics, which a test goes by and checkpoints keep.
  void spread_statistics(nn::GraphModule& module) const;

  // Once, for the gradients of the module's parameters.
  void watch_gradients(const nn::GraphModule& module);
  // Before the last backward pass of a step: gradients are sent as they come. After it: they are those of all ranks.
  void expect_gradients();
  void sum_gradients();

  StepTotals total(const StepTotals& mine) const;
  bool any(bool mine) const { return group_ == nullptr ? mine : group_->any(mine); }
  // What rank 0 says.
  int64_t agree(int64_t mine) const;

 private:
  RankGroup* group_;
  std::unique_ptr<ParameterGradients> gradients_;
};

}  // namespace onetap
