#include "onetap/train/rank_share.h"

#include "onetap/base/fail.h"
#include "onetap/nn/tensor_file.h"

#include <algorithm>

namespace onetap {
namespace {

int64_t last_batch(int64_t images, int64_t batch_size) {
  const int64_t rest = images % batch_size;
  return rest == 0 ? std::min(images, batch_size) : rest;
}

}  // namespace

void RankShare::check_batches(int64_t images, int64_t batch_size) const {
  if (!several()) return;
  const int64_t ranks = group_->size(), last = last_batch(images, batch_size);
  if (last >= ranks) return;
  if (images < ranks)
    fail_usage("[ranks] expected at least {} training images for {} ranks, got {}", ranks, ranks, images);
  int64_t would_do = std::max(batch_size, ranks);
  while (last_batch(images, would_do) < ranks) ++would_do;
  fail_usage(
      "[ranks] expected an image for each of {} ranks in every batch, got a last batch of {} (--batch-size {}): "
      "--batch-size {} would do, or fewer ranks",
      ranks, last, batch_size, would_do);
}

void RankShare::check_data(int64_t train_images, int64_t test_images) const {
  if (group_ == nullptr) return;
  const std::string mine = fmt::format("{} training and {} test images", train_images, test_images);
  const std::string first = group_->share(mine);
  if (mine != first)
    fail_data("[ranks] expected the data of rank 0, {}, got {} on rank {}", first, mine, group_->rank());
}

void RankShare::spread(nn::GraphModule& module, const Sgd& sgd, RunState& state) const {
  if (group_ == nullptr) return;
  state = RunState::parse(group_->share(state.json()), "the state of rank 0");
  for (const auto& [name, tensor] : nn::state_of(*module)) group_->broadcast(tensor);
  for (const auto& [name, tensor] : sgd.state()) group_->broadcast(tensor);
}

void RankShare::spread_statistics(nn::GraphModule& module) const {
  if (group_ == nullptr) return;
  for (const auto& buffer : module->buffers()) group_->broadcast(buffer);
}

void RankShare::watch_gradients(const nn::GraphModule& module) {
  if (group_ != nullptr) gradients_ = std::make_unique<ParameterGradients>(*group_, module->parameters());
}

void RankShare::backward(const torch::Tensor& loss, int64_t images, int64_t all) {
  if (gradients_) gradients_->begin();
  // A rank's mean weighs as much as its images.
  (images == all ? loss : loss * (static_cast<double>(images) / static_cast<double>(all))).backward();
  if (gradients_) gradients_->finish();
}

StepTotals RankShare::total(const StepTotals& mine) const {
  if (group_ == nullptr) return mine;
  const auto sums = group_->sum(
      {mine.loss, static_cast<double>(mine.right), static_cast<double>(mine.images), mine.stop ? 1.0 : 0.0});
  return {sums[0], static_cast<int64_t>(sums[1]), static_cast<int64_t>(sums[2]), sums[3] > 0};
}

int64_t RankShare::agree(int64_t mine) const {
  return group_ == nullptr ? mine : static_cast<int64_t>(group_->sum({leads() ? static_cast<double>(mine) : 0.0})[0]);
}

}  // namespace onetap
