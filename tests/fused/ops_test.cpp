// The CUDA kernels against the reference, over sizes; where there is no GPU, nothing but the reference's own sense.
#include "onetap/fused/ops.h"

#include "onetap/batches/batch_stream.h"
#include "onetap/data/source.h"
#include "onetap/fused/engine.h"
#include "tests/support/support.h"

#include <fmt/format.h>

#include <cmath>

namespace onetap::fused {
namespace {

double worst(const torch::Tensor& got, const torch::Tensor& expected) {
  const auto a = got.detach().cpu().to(torch::kFloat64), b = expected.detach().cpu().to(torch::kFloat64);
  return (a - b).abs().max().item<double>() / std::max(1e-3, b.abs().max().item<double>());
}

torch::Tensor rows(const torch::Tensor& x) {
  return x.contiguous(torch::MemoryFormat::ChannelsLast);
}

class CudaKernels : public ::testing::TestWithParam<torch::ScalarType> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available() || cuda_ops() == nullptr) GTEST_SKIP() << "skipped: no GPU";
    cuda_ = cuda_ops();
    torch::manual_seed(1);
  }
  // How far a result may be: that of a value's type.
  double near() const { return GetParam() == torch::kFloat32 ? 2e-5 : 1.2e-2; }
  torch::Tensor random(at::IntArrayRef shape) const { return rows(torch::randn(shape).to(GetParam())); }

  std::unique_ptr<Ops> reference_ = reference_ops(), cuda_;
};

NormState norm_state(int64_t channels, bool relu, torch::Device device) {
  NormState state;
  state.gamma = (torch::rand({channels}) + 0.5).to(device);
  state.beta = torch::randn({channels}).to(device);
  state.running_mean = torch::zeros({channels}).to(device);
  state.running_var = torch::ones({channels}).to(device);
  state.batches = torch::zeros({}, torch::kInt64).to(device);
  state.relu = relu;
  return state;
}

TEST_P(CudaKernels, NormsEqualTheReference) {
  struct Size {
    int64_t images, channels, padded, side;
  };
  for (const Size& size :
       {Size{2, 8, 8, 3}, {3, 5, 8, 7}, {8, 83, 96, 8}, {128, 16, 16, 32}, {5, 332, 352, 4}, {2, 1024, 1024, 7}}) {
    for (const bool relu : {false, true}) {
      for (const bool residual : {false, true}) {
        for (const int dys : {1, 2}) {
          const auto shape = {size.images, size.padded, size.side, size.side};
          const auto clear = [&](torch::Tensor x) {
            x.narrow(1, size.channels, size.padded - size.channels).zero_();
            return x;
          };
          const auto x = clear(random(shape) * 2 + 5), other = clear(random(shape));
          std::vector<torch::Tensor> dy, dy_cuda;
          for (int i = 0; i < dys; ++i) {
            dy.push_back(clear(random(shape)));
            dy_cuda.push_back(dy.back().cuda());
          }
          torch::manual_seed(5);
          NormState a = norm_state(size.channels, relu, torch::kCPU);
          torch::manual_seed(5);
          NormState b = norm_state(size.channels, relu, torch::kCUDA);
          const auto y = reference_->norm(a, x, residual ? other : torch::Tensor(), true);
          const auto y_cuda = cuda_->norm(b, x.cuda(), residual ? other.cuda() : torch::Tensor(), true);
          const std::string what = fmt::format("{}x{}({})x{} relu {} residual {} dys {}", size.images, size.channels,
                                               size.padded, size.side, relu, residual, dys);
          EXPECT_LT(worst(y_cuda, y), near()) << what;
          EXPECT_LT(worst(b.running_mean, a.running_mean), 1e-4) << what;
          EXPECT_LT(worst(b.running_var, a.running_var), 1e-4) << what;
          EXPECT_EQ(b.batches.item<int64_t>(), 1);
          // The same y for both: one that is rounded another way may fall on the other side of the ReLU.
          const auto grads = reference_->norm_backward(a, dy, x, y, residual);
          const auto grads_cuda = cuda_->norm_backward(b, dy_cuda, x.cuda(), y.cuda(), residual);
          EXPECT_LT(worst(grads_cuda.x, grads.x), near()) << what;
          EXPECT_LT(worst(b.gamma_grad, a.gamma_grad), 2e-3) << what;
          EXPECT_LT(worst(b.beta_grad, a.beta_grad), 2e-3) << what;
          if (residual) {
            EXPECT_LT(worst(grads_cuda.residual, grads.residual), near()) << what;
          }
          EXPECT_LT(worst(cuda_->norm(b, x.cuda(), {}, false), reference_->norm(a, x, {}, false)), near()) << what;
          if (HasFailure()) return;
        }
      }
    }
  }
}

ConvState conv_state(int64_t out, int64_t in, int64_t kernel, int64_t share, int64_t padded_in, torch::ScalarType type,
                     int64_t share_inputs = 1, Relax relax = Relax::kSoftmax) {
  ConvState conv;
  conv.weight = torch::randn({out, in, kernel, kernel});
  conv.weight_momentum = torch::randn_like(conv.weight);
  conv.layout.outputs = out;
  conv.layout.inputs = in;
  conv.layout.positions = kernel * kernel;
  if (share > 0) {
    conv.layout.share_outputs = share;
    conv.layout.share_inputs = share_inputs;
    conv.relax = relax;
    conv.attention = torch::rand({(out + share - 1) / share, (in + share_inputs - 1) / share_inputs, kernel * kernel});
    conv.attention[0][0].fill_(0.25);  // a slice without a best position
    conv.attention_momentum = torch::randn_like(conv.attention);
  }
  conv.packed = rows(torch::zeros({out + 3, padded_in, kernel, kernel}, type));
  conv.grad = rows(torch::randn({out + 3, padded_in, kernel, kernel}).to(type));
  return conv;
}

ConvState on_gpu(const ConvState& conv) {
  ConvState copy = conv;
  for (torch::Tensor* tensor :
       {&copy.weight, &copy.weight_momentum, &copy.attention, &copy.attention_momentum, &copy.packed, &copy.grad}) {
    if (tensor->defined()) *tensor = tensor->cuda().clone();
  }
  return copy;
}

TEST_P(CudaKernels, WeightsEqualTheReference) {
  for (const double temperature : {6.7, 0.5, 0.02}) {
    for (const bool nesterov : {false, true}) {
      std::vector<ConvState> convs = {conv_state(5, 3, 3, 0, 8, GetParam()), conv_state(7, 130, 3, 1, 136, GetParam()),
                                      conv_state(10, 16, 3, 4, 16, GetParam()), conv_state(6, 9, 5, 1, 16, GetParam()),
                                      conv_state(12, 300, 1, 0, 304, GetParam())};
      for (int i = 0; i < 40; ++i) convs.push_back(conv_state(3, 4, 3, 1, 8, GetParam()));  // more than one launch
      std::vector<ConvState> gpu;
      for (const ConvState& conv : convs) gpu.push_back(on_gpu(conv));
      StepValues values{torch::tensor({0.1, temperature}, torch::kFloat32)}, gpu_values{values.rates.cuda()};
      reference_->pack_weights(convs, values);
      cuda_->pack_weights(gpu, gpu_values);
      reference_->update_convs(convs, values, {0.9, nesterov, 5e-4});
      cuda_->update_convs(gpu, gpu_values, {0.9, nesterov, 5e-4});
      for (size_t i = 0; i < convs.size(); ++i) {
        const std::string what = fmt::format("convolution {} at {}", i, temperature);
        EXPECT_LT(worst(gpu[i].packed, convs[i].packed), near()) << what;
        EXPECT_LT(worst(gpu[i].weight, convs[i].weight), 1e-4) << what;
        EXPECT_LT(worst(gpu[i].weight_momentum, convs[i].weight_momentum), 1e-4) << what;
        if (!convs[i].attention.defined()) continue;
        EXPECT_LT(worst(gpu[i].attention, convs[i].attention), 1e-3) << what;
        EXPECT_LT(worst(gpu[i].attention_momentum, convs[i].attention_momentum), 1e-3) << what;
      }
    }
  }
}

// Blocks of inputs that divide the layer and that do not, at the limit of what a block of threads holds; outputs that
// are cut into parts.
TEST_P(CudaKernels, SharedBlocksEqualTheReference) {
  struct Blocks {
    int64_t out, in, kernel, share_outputs, share_inputs;
  };
  for (const Blocks& b : {Blocks{80, 80, 3, 4, 4},
                          {10, 7, 3, 4, 4},
                          {6, 5, 3, 3, 5},
                          {6, 9, 5, 2, 7},
                          {5, 97, 3, 1, 96},
                          {5, 200, 3, 2, 50},
                          {33, 200, 3, 16, 4},
                          {9, 3, 3, 9, 1},
                          {80, 80, 3, 80, 1},
                          {83, 30, 3, 83, 4},
                          {320, 100, 3, 320, 1},
                          {41, 9, 5, 41, 2},
                          {17, 4, 3, 9, 3}}) {
    for (const Relax relax : {Relax::kSoftmax, Relax::kStraightThrough}) {
      for (const double temperature : {6.7, 0.2}) {
        std::vector<ConvState> convs, gpu;
        // Two of them, and one without attention between: each has its own part of the memory.
        for (const int64_t share : {b.share_outputs, int64_t{0}, b.share_outputs}) {
          convs.push_back(
              conv_state(b.out, b.in, b.kernel, share, (b.in + 7) / 8 * 8, GetParam(), b.share_inputs, relax));
          gpu.push_back(on_gpu(convs.back()));
        }
        const StepValues values{torch::tensor({0.1, temperature}, torch::kFloat32)}, gpu_values{values.rates.cuda()};
        reference_->pack_weights(convs, values);
        cuda_->pack_weights(gpu, gpu_values);
        reference_->update_convs(convs, values, {0.9, false, 5e-4});
        cuda_->update_convs(gpu, gpu_values, {0.9, false, 5e-4});
        for (size_t i = 0; i < convs.size(); ++i) {
          const std::string what =
              fmt::format("{} of {}x{} kernel {} share {}x{} at {}, {}", i, b.out, b.in, b.kernel, b.share_outputs,
                          b.share_inputs, temperature, relax == Relax::kSoftmax ? "softmax" : "straight-through");
          EXPECT_LT(worst(gpu[i].packed, convs[i].packed), near()) << what;
          EXPECT_LT(worst(gpu[i].weight, convs[i].weight), 1e-4) << what;
          EXPECT_LT(worst(gpu[i].weight_momentum, convs[i].weight_momentum), 1e-4) << what;
          if (!convs[i].attention.defined()) continue;
          EXPECT_LT(worst(gpu[i].attention, convs[i].attention), 1e-3) << what;
          EXPECT_LT(worst(gpu[i].attention_momentum, convs[i].attention_momentum), 1e-3) << what;
        }
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(CudaKernels, WeightsOfAnyScaleEqualTheReference) {
  for (const double scale : {1e-12, 1e-25, 1e25}) {
    ConvState conv = conv_state(7, 20, 3, 1, 24, GetParam());
    conv.attention.mul_(scale);
    ConvState gpu = on_gpu(conv);
    const StepValues values{torch::tensor({0.1, 0.5}, torch::kFloat32)}, gpu_values{values.rates.cuda()};
    reference_->pack_weights(conv, values);
    cuda_->pack_weights(gpu, gpu_values);
    EXPECT_LT(worst(gpu.packed, conv.packed), near()) << scale;
    // Gradients are as large as logits are small; the momenta say them. Slices without a best position have other ones.
    reference_->update_convs(conv, values, {0, false, 0});
    cuda_->update_convs(gpu, gpu_values, {0, false, 0});
    const auto sloped = [&](const ConvState& state) { return state.attention_momentum.cpu().narrow(0, 1, 6) * scale; };
    EXPECT_LT(worst(sloped(gpu), sloped(conv)), 1e-3) << scale;
    EXPECT_LT(worst(gpu.attention_momentum[0][0], conv.attention_momentum[0][0]), 1e-3) << scale;
  }
  // Denormal numbers: P of 1, 2, ... times the smallest float there is.
  ConvState conv = conv_state(1, 8, 3, 1, 8, GetParam());
  conv.attention = torch::arange(1, 10, torch::kFloat32).view({1, 1, 9}).repeat({1, 8, 1});
  ConvState gpu = on_gpu(conv);
  gpu.attention.mul_(std::ldexp(1.0, -149));
  const StepValues values{torch::tensor({0.1, 0.5}, torch::kFloat32)}, gpu_values{values.rates.cuda()};
  reference_->pack_weights(conv, values);
  cuda_->pack_weights(gpu, gpu_values);
  EXPECT_LT(worst(gpu.packed, conv.packed), near());
}

TEST_P(CudaKernels, NotANumberAmongLogitsStaysOne) {
  ConvState conv = conv_state(3, 8, 3, 1, 8, GetParam());
  conv.attention[1][5][2] = std::nanf("");
  conv.attention[2][6].fill_(0.5);
  conv.attention[2][6][0] = std::nanf("");
  ConvState gpu = on_gpu(conv);
  const StepValues values{torch::tensor({0.1, 0.5}, torch::kFloat32)}, gpu_values{values.rates.cuda()};
  reference_->pack_weights(conv, values);
  cuda_->pack_weights(gpu, gpu_values);
  EXPECT_EQ(conv.packed.isnan().sum().item<int64_t>(), 18);
  EXPECT_TRUE(gpu.packed.isnan().cpu().equal(conv.packed.isnan()));
}

TEST_P(CudaKernels, PoolsAndLossEqualTheReference) {
  for (const int64_t classes : {2, 10, 1000}) {
    const auto logits = torch::randn({37, classes}) * 5;
    const auto labels = torch::randint(0, classes, {37}, torch::kInt64);
    for (const double smoothing : {0.0, 0.2}) {
      LossState a, b;
      a.sums = torch::zeros({2}, torch::kFloat64);
      b.sums = a.sums.cuda();
      a.label_smoothing = b.label_smoothing = smoothing;
      EXPECT_LT(worst(cuda_->loss(b, logits.cuda(), labels.cuda(), 50), reference_->loss(a, logits, labels, 50)), 1e-4);
      EXPECT_LT(worst(b.sums, a.sums), 1e-5);
    }
  }
  const auto x = random({7, 40, 5, 5});
  EXPECT_LT(worst(cuda_->global_pool(x.cuda(), 33), reference_->global_pool(x, 33)), 1e-5);
  const auto dy = torch::randn({7, 33});
  EXPECT_LT(worst(cuda_->column_sums(dy.cuda()), reference_->column_sums(dy)), 1e-5);
  EXPECT_LT(worst(cuda_->global_pool_backward(dy.cuda(), x.cuda()), reference_->global_pool_backward(dy, x)), near());
}

INSTANTIATE_TEST_SUITE_P(Types, CudaKernels, ::testing::Values(torch::kFloat32, torch::kBFloat16),
                         [](const auto& tested) { return tested.param == torch::kFloat32 ? "fp32" : "bf16"; });

// What the engine sees is what the loader hands out, image by image.
TEST(Sampling, EqualsTheLoader) {
  const DataSource source = open_data("shapes:train=50,test=10");
  StreamOptions stream;
  stream.view.size = source.image_size;
  stream.view.normalisation = source.normalisation;
  stream.batch_size = 16;
  stream.train = true;
  stream.augment = {Augment::kPadCrop, 4, true, 12};
  stream.seed = 9;
  stream.epoch = 3;
  std::vector<std::pair<std::unique_ptr<Ops>, torch::Device>> all;
  all.emplace_back(reference_ops(), torch::kCPU);
  if (torch::cuda::is_available() && cuda_ops() != nullptr) all.emplace_back(cuda_ops(), torch::kCUDA);
  for (const auto& [ops, device] : all) {
    AugmentState state = resident_data(*source.train, stream.view, device);
    state.seed = stream.seed;
    state.augment = state.flip = true;
    state.pad = 4;
    state.cutout = 12;
    const auto order = permutation(50, Random(9, Purpose::kShuffle, 3));
    for (size_t i = 0; i < order.size(); ++i) state.order[static_cast<int64_t>(i)] = static_cast<int32_t>(order[i]);
    BatchStream batches(*source.train, stream);
    Batch batch;
    for (int64_t step = 0; batches.next(batch); ++step) {
      state.clock.copy_(torch::tensor({step, int64_t{3}}, torch::kInt64));
      const Sample sample = ops->sample(state, {16, 0, batch.labels.size(0)}, 8, torch::kFloat32);
      EXPECT_TRUE(torch::equal(sample.labels.cpu(), batch.labels));
      EXPECT_TRUE(torch::equal(sample.images.cpu().narrow(1, 0, 3), batch.images)) << "step " << step;
      EXPECT_EQ(sample.images.narrow(1, 3, 5).abs().max().item<double>(), 0);
      const Sample last = ops->sample(state, {16, batch.labels.size(0) - 1, 1}, 8, torch::kFloat32);
      EXPECT_TRUE(torch::equal(last.images.cpu()[0].narrow(0, 0, 3), batch.images[-1]));
    }
  }
}

}  // namespace
}  // namespace onetap::fused
