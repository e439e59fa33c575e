#include "onetap/ranks/gradient_sum.h"

#include <functional>

namespace onetap {

GradientSum::GradientSum(RankGroup& group, const std::vector<int64_t>& sizes, torch::Device device,
                         int64_t bucket_bytes)
    : group_(group) {
  const int64_t full = bucket_bytes / static_cast<int64_t>(sizeof(float));
  std::vector<int64_t> lengths;
  for (const int64_t size : sizes) {
    if (lengths.empty() || (lengths.back() > 0 && lengths.back() + size > full)) {
      lengths.push_back(0);
      buckets_.emplace_back();
    }
    buckets_.back().slots.push_back(slots_.size());
    slots_.push_back({buckets_.size() - 1, lengths.back(), size, false});
    lengths.back() += size;
  }
  for (size_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i].flat = torch::zeros({lengths[i]}, torch::TensorOptions(torch::kFloat32).device(device));
    buckets_[i].missing = buckets_[i].slots.size();
  }
}

torch::Tensor GradientSum::sum(size_t index) const {
  const Slot& slot = slots_[index];
  return buckets_[slot.bucket].flat.narrow(0, slot.first, slot.count);
}

void GradientSum::add(size_t index, const torch::Tensor& gradient) {
  const torch::NoGradGuard no_grad;
  sum(index).view(gradient.sizes()).copy_(gradient);
  Slot& slot = slots_[index];
  slot.added = true;
  --buckets_[slot.bucket].missing;
  send_full_ones();
}

void GradientSum::send_full_ones() {
  for (; sent_ < buckets_.size() && buckets_[sent_].missing == 0; ++sent_) {
    buckets_[sent_].pending = group_.start_sum(buckets_[sent_].flat);
  }
}

void GradientSum::finish() {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].added) sum(i).zero_();
    slots_[i].added = false;
  }
  for (Bucket& bucket : buckets_) bucket.missing = 0;
  send_full_ones();
  for (Bucket& bucket : buckets_) {
    bucket.pending->wait();
    bucket.pending.reset();
    bucket.missing = bucket.slots.size();
  }
  sent_ = 0;
}

// Shared with the hooks, which live as long as the graph that they hang on.
struct ParameterGradients::Core {
  std::vector<torch::Tensor> parameters;  // last of the network first
  std::unique_ptr<GradientSum> sums;
  bool listening = false;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;  // parameters hold them only weakly

  void ready(size_t index) {
    if (listening && parameters[index].grad().defined()) sums->add(index, parameters[index].grad());
  }
};

namespace {

// Called when a gradient has been added to its parameter's.
class AfterAccumulation : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(std::function<void()> action) : action_(std::move(action)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    action_();
    return outputs;
  }

 private:
  std::function<void()> action_;
};

}  // namespace

ParameterGradients::ParameterGradients(RankGroup& group, const std::vector<torch::Tensor>& parameters,
                                       int64_t bucket_bytes)
    : core_(std::make_shared<Core>()) {
  core_->parameters.assign(parameters.rbegin(), parameters.rend());
  std::vector<int64_t> sizes;
  for (const auto& parameter : core_->parameters) sizes.push_back(parameter.numel());
  core_->sums = std::make_unique<GradientSum>(group, sizes, core_->parameters.at(0).device(), bucket_bytes);
  for (size_t i = 0; i < core_->parameters.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(core_->parameters[i]);
    accumulator->add_post_hook(std::make_unique<AfterAccumulation>([weak = std::weak_ptr<Core>(core_), i] {
      if (const auto core = weak.lock()) core->ready(i);
    }));
    core_->accumulators.push_back(std::move(accumulator));
  }
}

ParameterGradients::~ParameterGradients() = default;

void ParameterGradients::begin() {
  core_->listening = true;
}

void ParameterGradients::finish() {
  core_->listening = false;
  core_->sums->finish();
  for (size_t i = 0; i < core_->parameters.size(); ++i) {
    torch::Tensor& parameter = core_->parameters[i];
    if (parameter.grad().defined()) parameter.mutable_grad() = core_->sums->sum(i).view(parameter.sizes());
  }
}

}  // namespace onetap
