#include "onetap/fused/kernels.h"
#include "onetap/fused/ops.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace onetap::fused {
namespace {

cudaStream_t stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}

cuda::Rows rows_of(const torch::Tensor& x) {
  return {x.size(0) * x.size(2) * x.size(3), x.size(1), x.scalar_type() == torch::kFloat32};
}

// Activations come from convolutions, which keep the layout as a rule.
torch::Tensor in_rows(const torch::Tensor& x) {
  return x.contiguous(torch::MemoryFormat::ChannelsLast);
}

torch::Tensor empty_like_rows(const torch::Tensor& x) {
  return torch::empty_like(x, x.options(), torch::MemoryFormat::ChannelsLast);
}

std::vector<cuda::ConvEntry> entries_of(at::ArrayRef<ConvState> convs) {
  std::vector<cuda::ConvEntry> entries;
  const auto floats = [](const torch::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<float>() : nullptr; };
  for (const ConvState& conv : convs) {
    cuda::ConvEntry entry;
    entry.weight = floats(conv.weight);
    entry.weight_momentum = floats(conv.weight_momentum);
    entry.attention = floats(conv.attention);
    entry.attention_momentum = floats(conv.attention_momentum);
    entry.packed = conv.packed.data_ptr();
    entry.grad = conv.grad.defined() ? conv.grad.data_ptr() : nullptr;
    entry.outputs = static_cast<int>(conv.outputs());
    entry.inputs = static_cast<int>(conv.inputs());
    entry.padded_inputs = static_cast<int>(conv.packed.size(1));
    entry.area = static_cast<int>(conv.area());
    entry.share_outputs = static_cast<int>(conv.layout.share_outputs);
    entry.share_inputs = static_cast<int>(conv.layout.share_inputs);
    entry.output_blocks = static_cast<int>(conv.layout.output_blocks());
    entry.input_blocks = static_cast<int>(conv.layout.input_blocks());
    entry.straight_through = conv.relax == Relax::kStraightThrough;
    entries.push_back(entry);
  }
  return entries;
}

cuda::Update update_of(const UpdateOptions& options) {
  return {static_cast<float>(options.momentum), static_cast<float>(options.weight_decay), options.nesterov};
}

class CudaOps : public Ops {
 public:
  void pack_weights(at::ArrayRef<ConvState> convs, const StepValues& values) override {
    const auto entries = entries_of(convs);
    cuda::pack_weights(entries.data(), static_cast<int>(entries.size()), is_wide(convs), values.rates.data_ptr<float>(),
                       stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  void update_convs(at::ArrayRef<ConvState> convs, const StepValues& values, const UpdateOptions& options) override {
    auto entries = entries_of(convs);
    give_partials(entries, convs.front().weight);
    cuda::update_convs(entries.data(), static_cast<int>(entries.size()), is_wide(convs), values.rates.data_ptr<float>(),
                       update_of(options), stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  void update_plain(std::vector<PlainState>& states, const StepValues& values, const UpdateOptions& options) override {
    std::vector<cuda::PlainEntry> entries;
    for (PlainState& state : states) {
      state.grad = state.grad.contiguous();
      entries.push_back({state.parameter.data_ptr<float>(), state.momentum.data_ptr<float>(),
                         state.grad.data_ptr<float>(), state.parameter.numel(), static_cast<float>(state.rule.rate),
                         static_cast<float>(state.rule.decay)});
    }
    cuda::update_plain(entries.data(), static_cast<int>(entries.size()), values.rates.data_ptr<float>(),
                       update_of(options), stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  torch::Tensor norm(NormState& state, const torch::Tensor& given, const torch::Tensor& residual,
                     bool training) override {
    const auto x = in_rows(given);
    const auto floats = [&](int64_t count) {
      return torch::empty({count}, torch::TensorOptions(torch::kFloat32).device(x.device()));
    };
    state.mean = floats(x.size(1));
    state.inverse_sd = floats(x.size(1));
    state.scale = floats(x.size(1));
    state.shift = floats(x.size(1));
    const auto arguments = arguments_of(state, x);
    if (training) {
      cuda::norm_statistics(arguments, x.data_ptr(), scratch(x), counters(x), stream());
    } else {
      cuda::norm_from_running(arguments, stream());
    }
    auto y = empty_like_rows(x);
    const auto other = residual.defined() ? in_rows(residual) : residual;
    cuda::norm_apply(arguments, x.data_ptr(), other.defined() ? other.data_ptr() : nullptr, y.data_ptr(), stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
  }

  NormGrads norm_backward(NormState& state, const std::vector<torch::Tensor>& dy, const torch::Tensor& given,
                          const torch::Tensor& y, bool has_residual) override {
    const auto x = in_rows(given);
    const auto first = in_rows(dy[0]), second = dy.size() > 1 ? in_rows(dy[1]) : torch::Tensor();
    const auto floats = torch::TensorOptions(torch::kFloat32).device(x.device());
    state.gamma_grad = torch::empty({x.size(1)}, floats);
    state.beta_grad = torch::empty({x.size(1)}, floats);
    const auto coefficients = torch::empty({2 * x.size(1)}, floats);
    NormGrads grads{empty_like_rows(x), has_residual ? empty_like_rows(x) : torch::Tensor()};
    cuda::NormBackwardArguments a;
    a.norm = arguments_of(state, x);
    a.dy[0] = first.data_ptr();
    a.dy[1] = second.defined() ? second.data_ptr() : nullptr;
    a.x = x.data_ptr();
    a.y = y.data_ptr();
    a.dz = has_residual ? grads.residual.data_ptr() : nullptr;
    a.dx = grads.x.data_ptr();
    a.gamma_grad = state.gamma_grad.data_ptr<float>();
    a.beta_grad = state.beta_grad.data_ptr<float>();
    a.coefficients = coefficients.data_ptr<float>();
    cuda::norm_backward(a, scratch(x), counters(x), stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return grads;
  }

  torch::Tensor global_pool(const torch::Tensor& given, int64_t channels) override {
    const auto x = in_rows(given);
    auto y = torch::empty({x.size(0), channels}, torch::TensorOptions(torch::kFloat32).device(x.device()));
    cuda::global_pool(rows_of(x), x.data_ptr(), x.size(0), channels, y.data_ptr<float>(), stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
  }

  torch::Tensor global_pool_backward(const torch::Tensor& dy, const torch::Tensor& x) override {
    auto dx = empty_like_rows(x);
    const auto grad = dy.contiguous();
    cuda::global_pool_backward(rows_of(x), grad.data_ptr<float>(), x.size(0), dy.size(1), dx.data_ptr(), stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return dx;
  }

  torch::Tensor column_sums(const torch::Tensor& given) override {
    const auto x = given.contiguous();
    auto sums = torch::empty({x.size(1)}, x.options());
    cuda::column_sums(x.data_ptr<float>(), x.size(0), x.size(1), sums.data_ptr<float>(), stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return sums;
  }

  torch::Tensor loss(LossState& state, const torch::Tensor& given, const torch::Tensor& labels,
                     int64_t step_images) override {
    const auto logits = given.contiguous();
    auto dlogits = torch::empty_like(logits);
    cuda::LossArguments a;
    a.logits = logits.data_ptr<float>();
    a.labels = labels.data_ptr<int64_t>();
    a.images = static_cast<int>(logits.size(0));
    a.classes = static_cast<int>(logits.size(1));
    a.smoothing = static_cast<float>(state.label_smoothing);
    a.step_images = static_cast<float>(step_images);
    a.dlogits = dlogits.data_ptr<float>();
    a.sums = state.sums.data_ptr<double>();
    cuda::cross_entropy(a, stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return dlogits;
  }

  Sample sample(const AugmentState& state, const SampleRange& range, int64_t channels,
                torch::ScalarType type) override {
    const auto device = state.images.device();
    Sample out;
    out.images = torch::empty({range.count, channels, state.images.size(2), state.images.size(3)},
                              torch::TensorOptions(type).device(device), torch::MemoryFormat::ChannelsLast);
    out.labels = torch::empty({range.count}, torch::TensorOptions(torch::kInt64).device(device));
    cuda::SampleArguments a;
    a.images = state.images.data_ptr<uint8_t>();
    a.labels = state.labels.data_ptr<int64_t>();
    a.order = state.order.data_ptr<int32_t>();
    a.clock = state.clock.data_ptr<int64_t>();
    a.seed = state.seed;
    a.batch = range.batch;
    a.first = range.first;
    a.count = range.count;
    a.height = state.images.size(2);
    a.width = state.images.size(3);
    a.channels = channels;
    a.pad = static_cast<int>(state.pad);
    a.cutout = static_cast<int>(state.cutout);
    a.flip = state.flip;
    a.augment = state.augment;
    a.wide = type == torch::kFloat32;
    for (size_t c = 0; c < 3; ++c) {
      a.multiply[c] = state.multiply[c];
      a.add[c] = state.add[c];
    }
    a.out = out.images.data_ptr();
    a.out_labels = out.labels.data_ptr<int64_t>();
    cuda::sample(a, stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
  }

  void advance(const AugmentState& state, const torch::Tensor& counter, const torch::Tensor& tables,
               const StepValues& values) override {
    cuda::advance(state.clock.data_ptr<int64_t>(), counter.data_ptr<int64_t>(), tables.data_ptr<float>(),
                  tables.size(1), values.rates.data_ptr<float>(), stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

 private:
  static bool is_wide(at::ArrayRef<ConvState> convs) { return convs.front().packed.scalar_type() == torch::kFloat32; }

  static cuda::NormArguments arguments_of(NormState& state, const torch::Tensor& x) {
    cuda::NormArguments a;
    a.rows = rows_of(x);
    a.real = state.channels();
    a.gamma = state.gamma.data_ptr<float>();
    a.beta = state.beta.data_ptr<float>();
    a.running_mean = state.running_mean.data_ptr<float>();
    a.running_var = state.running_var.data_ptr<float>();
    a.batches = state.batches.data_ptr<int64_t>();
    a.mean = state.mean.data_ptr<float>();
    a.inverse_sd = state.inverse_sd.data_ptr<float>();
    a.scale = state.scale.data_ptr<float>();
    a.shift = state.shift.data_ptr<float>();
    a.relu = state.relu;
    return a;
  }

  // Updates of weights follow each other on one stream, which need not be that of the norms.
  void give_partials(std::vector<cuda::ConvEntry>& entries, const torch::Tensor& like) {
    int64_t floats = 0;
    for (const cuda::ConvEntry& entry : entries) floats += cuda::partial_floats(entry);
    if (floats == 0) return;
    float* next = grown(partials_, floats, torch::kFloat32, like).data_ptr<float>();
    for (cuda::ConvEntry& entry : entries) {
      entry.partial = next;
      next += cuda::partial_floats(entry);
    }
  }

  // Reductions follow each other on one stream, so they share scratch and counters. Both outlive every captured graph,
  // smaller ones too.
  float* scratch(const torch::Tensor& x) {
    return grown(scratch_, cuda::norm_scratch_floats(x.size(1)), torch::kFloat32, x).data_ptr<float>();
  }
  unsigned* counters(const torch::Tensor& x) {
    const auto& memory = grown(counters_, cuda::norm_counters(x.size(1)), torch::kInt32, x);
    return reinterpret_cast<unsigned*>(memory.data_ptr<int32_t>());
  }
  static const torch::Tensor& grown(std::vector<torch::Tensor>& memory, int64_t count, torch::ScalarType type,
                                    const torch::Tensor& x) {
    if (memory.empty() || memory.back().numel() < count) {
      memory.push_back(torch::zeros({count}, torch::TensorOptions(type).device(x.device())));
    }
    return memory.back();
  }

  std::vector<torch::Tensor> scratch_, counters_, partials_;  // the last one is the present one
};

}  // namespace

std::unique_ptr<Ops> cuda_ops() {
  return std::make_unique<CudaOps>();
}

}  // namespace onetap::fused
