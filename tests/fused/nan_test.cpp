// NaN and infinity must reach the loss: kernel by kernel as the reference has them, and from every parameter.
#include "onetap/fused/network.h"
#include "onetap/train/sgd.h"
#include "tests/fused/networks.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace onetap::fused {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
const double kBroken[] = {kNan, kInf, -kInf};

bool has_gpu() {
  return torch::cuda::is_available() && cuda_ops() != nullptr;
}

// Whether the same values are broken, and the others near.
void expect_same_breaks(const torch::Tensor& got, const torch::Tensor& expected, const std::string& what) {
  const auto a = got.detach().cpu().to(torch::kFloat64), b = expected.detach().cpu().to(torch::kFloat64);
  EXPECT_TRUE(torch::equal(a.isfinite(), b.isfinite()))
      << what << ": " << a.isfinite().sum().item<int64_t>() << " of " << a.numel() << " are finite, expected "
      << b.isfinite().sum().item<int64_t>();
  EXPECT_TRUE(torch::allclose(torch::nan_to_num(a, 0, 0, 0), torch::nan_to_num(b, 0, 0, 0), 2e-2, 2e-2)) << what;
}

NormState plain_norm(int64_t channels, bool relu, torch::Device device) {
  const auto floats = torch::TensorOptions(torch::kFloat32).device(device);
  NormState state;
  state.gamma = torch::ones({channels}, floats);
  state.beta = torch::zeros({channels}, floats);
  state.running_mean = torch::zeros({channels}, floats);
  state.running_var = torch::ones({channels}, floats);
  state.batches = torch::zeros({}, floats.dtype(torch::kInt64));
  state.relu = relu;
  return state;
}

class BrokenNumbers : public ::testing::TestWithParam<torch::ScalarType> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "skipped: no GPU";
    cuda_ = cuda_ops();
    torch::manual_seed(1);
  }
  torch::Tensor random(at::IntArrayRef shape) const {
    return torch::randn(shape).to(GetParam()).contiguous(torch::MemoryFormat::ChannelsLast);
  }

  std::unique_ptr<Ops> reference_ = reference_ops(), cuda_;
};

// In the first row, about which the kernel sums, and in another; in x, in the residual and in dy.
TEST_P(BrokenNumbers, PassThroughNorms) {
  enum Place { kInput, kResidual, kGradient };
  for (const double broken : kBroken) {
    for (const Place place : {kInput, kResidual, kGradient}) {
      for (const int64_t pixel : {0, 5}) {
        for (const bool relu : {false, true}) {
          for (const bool residual : {false, true}) {
            if (place == kResidual && !residual) continue;
            const std::string what = fmt::format("{} in {} at {}, relu {} residual {}", broken, static_cast<int>(place),
                                                 pixel, relu, residual);
            const std::vector<int64_t> shape = {3, 16, 4, 4};
            torch::Tensor tensors[3] = {random(shape), random(shape), random(shape)};
            tensors[place].view({3, 16, 16})[pixel == 0 ? 0 : 1][2][pixel] = broken;
            const auto& [x, other, dy] = tensors;
            NormState a = plain_norm(16, relu, torch::kCPU), b = plain_norm(16, relu, torch::kCUDA);
            const auto y = reference_->norm(a, x, residual ? other : torch::Tensor(), true);
            expect_same_breaks(cuda_->norm(b, x.cuda(), residual ? other.cuda() : torch::Tensor(), true), y, what);
            expect_same_breaks(b.running_mean, a.running_mean, what + ": mean");
            expect_same_breaks(b.running_var, a.running_var, what + ": variance");
            const auto grads = reference_->norm_backward(a, {dy}, x, y, residual);
            const auto grads_cuda = cuda_->norm_backward(b, {dy.cuda()}, x.cuda(), y.cuda(), residual);
            expect_same_breaks(grads_cuda.x, grads.x, what + ": dx");
            expect_same_breaks(b.gamma_grad, a.gamma_grad, what + ": dgamma");
            expect_same_breaks(b.beta_grad, a.beta_grad, what + ": dbeta");
            if (residual) expect_same_breaks(grads_cuda.residual, grads.residual, what + ": dresidual");
            expect_same_breaks(cuda_->norm(b, x.cuda(), {}, false), reference_->norm(a, x, {}, false), what + ": test");
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(BrokenNumbers, PassThroughPoolsAndTheLoss) {
  for (const double broken : kBroken) {
    auto x = random({3, 40, 5, 5});
    x[1][7][2][3] = broken;
    expect_same_breaks(cuda_->global_pool(x.cuda(), 33), reference_->global_pool(x, 33), "pool");
    auto dy = torch::randn({3, 33});
    dy[2][4] = broken;
    expect_same_breaks(cuda_->column_sums(dy.cuda()), reference_->column_sums(dy), "column sums");
    expect_same_breaks(cuda_->global_pool_backward(dy.cuda(), x.cuda()), reference_->global_pool_backward(dy, x),
                       "pool backward");
    for (const int64_t classes : {10, 100}) {
      for (const int64_t at : {0, 3, 9, 40, 99}) {
        if (at >= classes) continue;
        auto logits = torch::randn({5, classes});
        logits[2][at] = broken;
        if (std::isnan(broken) && at + 1 < classes) logits[2][at + 1] = broken;  // argmax takes the first of two
        const auto labels = torch::full({5}, at, torch::kInt64);
        LossState a, b;
        a.sums = torch::zeros({2}, torch::kFloat64);
        b.sums = a.sums.cuda();
        a.label_smoothing = b.label_smoothing = 0.1;
        const std::string what = fmt::format("{} at {} of {}", broken, at, classes);
        expect_same_breaks(cuda_->loss(b, logits.cuda(), labels.cuda(), 5), reference_->loss(a, logits, labels, 5),
                           what);
        EXPECT_FALSE(std::isfinite(b.sums[0].item<double>())) << what;
        EXPECT_EQ(b.sums[1].item<double>(), a.sums[1].item<double>()) << what;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BrokenNumbers, ::testing::Values(torch::kFloat32, torch::kBFloat16),
                         [](const auto& tested) { return tested.param == torch::kFloat32 ? "fp32" : "bf16"; });

// autograd's answer where a ReLU's output is no number: the gradient passes; where it is zero, nothing does.
TEST(BrokenNumbersInReference, PassTheReluAsInAutograd) {
  const auto x = torch::tensor({1.0f, -1.0f, 2.0f, -2.0f}).view({4, 1, 1, 1});
  const auto dy = torch::tensor({1.0f, std::numeric_limits<float>::quiet_NaN(), 3.0f, 4.0f}).view({4, 1, 1, 1});
  NormState state = plain_norm(1, true, torch::kCPU);
  const auto ops = reference_ops();
  const auto y = ops->norm(state, x, torch::zeros_like(dy), true);
  ops->norm_backward(state, {dy}, x, y, true);
  // Rows 0 and 2 are positive: their gradients alone reach beta. The NaN is that of a row that the ReLU cut.
  EXPECT_EQ(state.beta_grad.item<double>(), 4);
}

// One broken weight anywhere, and the loss is broken, by the reference and by the kernels.
TEST(BrokenNumbersInReference, OfEveryParameterReachTheLoss) {
  const Graph graph = testing::small_network("resnet8", 5, sal_method());
  for (const torch::Device device : {torch::Device(torch::kCPU), torch::Device(torch::kCUDA)}) {
    if (device.is_cuda() && !has_gpu()) continue;
    const std::shared_ptr<Ops> ops = device.is_cuda() ? cuda_ops() : reference_ops();
    torch::manual_seed(3);
    nn::GraphModule module(graph);
    module->to(device);
    const Sgd sgd(*module, {0.9, false, 1e-3});
    Network network(module, sgd.state(), {torch::kFloat32, /*pad_channels=*/true}, ops);
    const auto images = testing::as_activations(torch::randn({6, 3, 8, 8}).to(device), network.input_channels());
    const auto labels = torch::arange(6, torch::kInt64).remainder(5).to(device);
    const StepValues values{torch::tensor({0.05, 1.0}, torch::kFloat32).to(device)};
    const auto loss_of_step = [&] {
      LossState loss;
      loss.sums = torch::zeros({2}, torch::TensorOptions(torch::kFloat64).device(device));
      network.pack(values);
      ops->loss(loss, network.forward(images), labels, 6);
      return loss.sums[0].item<double>();
    };
    ASSERT_TRUE(std::isfinite(loss_of_step()));
    for (const auto& item : module->named_parameters()) {
      torch::Tensor first = item.value().detach().flatten().narrow(0, 0, 1);
      const auto before = first.clone();
      first.fill_(kNan);
      EXPECT_FALSE(std::isfinite(loss_of_step())) << item.key() << " on " << device;
      first.copy_(before);
    }
  }
}

}  // namespace
}  // namespace onetap::fused
