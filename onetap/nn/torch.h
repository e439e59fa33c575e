// LibTorch, and the few places where 1.13 and 2.x differ. The only header of onetap that includes it.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/torch.h>
#include <torch/version.h>

namespace onetap {

#define ONETAP_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// Positions of `scores` along the last dimension, best first, ties in favour of the lower position.
inline torch::Tensor sorted_positions(const torch::Tensor& scores) {
  return std::get<1>(torch::sort(scores, /*stable=*/true, /*dim=*/-1, /*descending=*/true));
}

// One number a channel, against [N, C, H, W].
inline torch::Tensor per_channel(const torch::Tensor& values) {
  return values.view({1, -1, 1, 1});
}

// How LibTorch computes on a GPU from now on: whether 32-bit convolutions and products may round their inputs to TF32;
// and how many of its algorithms cuDNN times for each convolution, those that its heuristics rank highest first; 0:
// all.
inline void set_gpu_arithmetic(bool tf32, int64_t conv_trials) {
  at::globalContext().setAllowTF32CuDNN(tf32);
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setBenchmarkCuDNN(true);
  at::globalContext().setBenchmarkLimitCuDNN(static_cast<int>(conv_trials));
}

// On a CPU LibTorch (1.13 as well as 2.11) reads and writes outside of its memory in a 1x1 convolution that has a
// stride and fewer than 16 inputs, if channels lie last: true for an input and weights that must not come so.
inline bool needs_channels_first(const torch::Tensor& x, const torch::Tensor& weight, bool strided) {
  return strided && !x.is_cuda() && weight.dim() == 4 && weight.size(2) * weight.size(3) == 1 && weight.size(1) < 16;
}

// A weight as convolutions on a GPU want it beside these activations, by one copy: in their type, and with channels
// last where theirs lie so. cuDNN would make one of its own in every pass.
inline torch::Tensor laid_out_for(const torch::Tensor& x, const torch::Tensor& weight) {
  const auto last = torch::MemoryFormat::ChannelsLast;
  if (!x.is_cuda() || x.dim() != 4 || x.is_contiguous() || !x.is_contiguous(last)) return weight;
  if (weight.scalar_type() == x.scalar_type() && weight.is_contiguous(last)) return weight;
  return weight.to(x.scalar_type(), /*non_blocking=*/false, /*copy=*/false, last);
}

// averages[i] += rate * (values[i] - averages[i]), in few launches where LibTorch can.
inline void lerp_all(std::vector<torch::Tensor>& averages, const std::vector<torch::Tensor>& values, double rate) {
#if ONETAP_TORCH_AT_LEAST(2, 1)
  at::_foreach_lerp_(averages, values, rate);
#else
  for (size_t i = 0; i < averages.size(); ++i) averages[i].lerp_(values[i], rate);
#endif
}

// Autocast on a GPU, for the present thread. Its cache of cast weights must be emptied after every step, or gradients
// of the first step's copies would be lost.
inline void begin_autocast(at::ScalarType type) {
#if ONETAP_TORCH_AT_LEAST(2, 4)
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  at::autocast::set_autocast_dtype(at::kCUDA, type);
#else
  at::autocast::set_enabled(true);
  at::autocast::set_autocast_gpu_dtype(type);
#endif
}
inline void end_autocast() {
#if ONETAP_TORCH_AT_LEAST(2, 4)
  at::autocast::set_autocast_enabled(at::kCUDA, false);
#else
  at::autocast::set_enabled(false);
#endif
  at::autocast::clear_cache();
}

// Where `active`, autocast to bfloat16 while it lives, for one forward pass. Weights are cast once in it, and forgotten
// after it.
class AutocastGuard {
 public:
  explicit AutocastGuard(bool active) : active_(active) {
    if (active_) begin_autocast(torch::kBFloat16);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;
  ~AutocastGuard() {
    if (active_) end_autocast();
  }

 private:
  bool active_;
};

}  // namespace onetap
