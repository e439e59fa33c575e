#include "onetap/train/rank_share.h"

#include "onetap/base/fail.h"
#include "onetap/graph/text.h"

#include <algorithm>

namespace onetap {
namespace {

int64_t last_batch(int64_t images, int64_t batch_size) {
  const int64_t rest = images % batch_size;
  return rest == 0 ? std::min(images, batch_size) : rest;
}

}  // namespace

void RankShare::check_batches(const Recipe& recipe, int64_t images) const {
  if (!several()) return;
  const int64_t ranks = group_->size(), needed = ranks * (recipe.sync_norm ? recipe.accumulate : 1);
  const int64_t last = last_batch(images, recipe.batch_size);
  if (last >= needed) return;
  if (images < needed) {
    fail_usage("[ranks] expected at least {} training images for {} ranks, got {}", needed, ranks, images);
  }
  int64_t would_do = std::max(recipe.batch_size, needed);
  while (last_batch(images, would_do) < needed) ++would_do;
  fail_usage(
      "[ranks] expected at least {} images in every batch for {} ranks, got a last batch of {} (--batch-size {}): "
      "use --batch-size {} or fewer ranks",
      needed, ranks, last, recipe.batch_size, would_do);
}

void RankShare::check_data(int64_t train_images, int64_t test_images) const {
  if (group_ == nullptr) return;
  const std::string mine = fmt::format("{} training and {} test images", train_images, test_images);
  const std::string first = group_->share(mine);
  if (mine != first)
    fail_data("[ranks] expected the data of rank 0, {}, got {} on rank {}", first, mine, group_->rank());
}

RunState RankShare::spread(const RunState& state) const {
  return group_ == nullptr ? state : RunState::parse(group_->share(state.json()), "the state of rank 0");
}

void RankShare::spread(const nn::NamedTensors& tensors) const {
  if (group_ == nullptr) return;
  for (const auto& [name, tensor] : tensors) group_->broadcast(tensor);
}

nn::GraphModule RankShare::spread_network(const nn::GraphModule& mine, torch::Device device) const {
  const std::string network = group_ == nullptr ? "" : group_->share(leads() ? network_text(mine->graph()) : "");
  nn::GraphModule module = leads() ? mine : nn::GraphModule(parse_network(network));
  module->to(device);
  spread(nn::state_of(*module));
  return module;
}

void RankShare::spread_statistics(nn::GraphModule& module) const {
  if (group_ == nullptr) return;
  for (const auto& buffer : module->buffers()) group_->broadcast(buffer);
}

void RankShare::watch_gradients(const nn::GraphModule& module) {
  if (group_ == nullptr) return;
  std::vector<torch::Tensor> trained;
  for (const torch::Tensor& parameter : module->parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  gradients_ = std::make_unique<ParameterGradients>(*group_, trained);
}

void RankShare::expect_gradients() {
  if (gradients_) gradients_->begin();
}

void RankShare::sum_gradients() {
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
