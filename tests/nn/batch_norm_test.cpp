// Batch norm in training against LibTorch's own in 64 bits.
#include "onetap/nn/batch_norm.h"

#include "onetap/graph/text.h"
#include "onetap/nn/graph_module.h"
#include "tests/support/support.h"

namespace onetap::nn {
namespace {

// The largest difference, in units of the largest value.
double worst_of(const torch::Tensor& got, const torch::Tensor& expected) {
  const auto a = got.detach().to(torch::kFloat64), b = expected.detach();
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

struct NormResult {
  torch::Tensor y, dx, dweight, dbias, mean, variance;
};

template <typename Forward>
NormResult run_norm(torch::nn::BatchNorm2d& norm, const torch::Tensor& x, const torch::Tensor& dy,
                    const Forward& forward) {
  norm->train();
  const auto input = x.detach().clone().requires_grad_();
  const auto y = forward(input);
  y.backward(dy);
  return {y, input.grad(), norm->weight.grad(), norm->bias.grad(), norm->running_mean, norm->running_var};
}

TEST(TrainingNorm, IsAsGoodAs32BitsAllow) {
  struct Size {
    int64_t images, channels, side;
  };
  for (const Size& size : {Size{128, 16, 32}, {3, 3, 2}, {5, 33, 7}, {64, 40, 16}}) {
    for (const auto format : {torch::MemoryFormat::ChannelsLast, torch::MemoryFormat::Contiguous}) {
      torch::manual_seed(1);
      const std::vector<int64_t> shape = {size.images, size.channels, size.side, size.side};
      const auto x = (torch::randn(shape) * 2 + 3).contiguous(format), dy = torch::randn(shape).contiguous(format);
      torch::nn::BatchNorm2d norm(size.channels), exact(size.channels);
      exact->to(torch::kFloat64);
      const auto got = run_norm(norm, x, dy, [&](const torch::Tensor& in) { return training_norm(*norm, in); });
      const auto expected = run_norm(exact, x.to(torch::kFloat64), dy.to(torch::kFloat64),
                                     [&](const torch::Tensor& in) { return exact->forward(in); });
      const std::string what = std::to_string(size.channels) + " channels";
      // A few roundings of 6e-8 each; a plain sum over 131,072 pixels would be off by 1e-5 and more.
      EXPECT_LT(worst_of(got.y, expected.y), 1e-6) << what;
      EXPECT_LT(worst_of(got.dx, expected.dx), 3e-6) << what;
      EXPECT_LT(worst_of(got.dweight, expected.dweight), 3e-6) << what;
      EXPECT_LT(worst_of(got.dbias, expected.dbias), 3e-6) << what;
      EXPECT_LT(worst_of(got.mean, expected.mean), 1e-6) << what;
      EXPECT_LT(worst_of(got.variance, expected.variance), 1e-6) << what;
      EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
    }
  }
}

// The mean of all batches where there is no momentum, as when statistics are taken anew.
TEST(TrainingNorm, AveragesOverBatchesWithoutMomentum) {
  torch::nn::BatchNorm2d norm(torch::nn::BatchNormOptions(4).momentum(c10::nullopt));
  const auto x = torch::randn({4, 4, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast);
  training_norm(*norm, x);
  training_norm(*norm, x + 2);
  EXPECT_LT(worst_of(norm->running_mean, (x.to(torch::kFloat64) + 1).mean(at::IntArrayRef{0, 2, 3})), 1e-6);
}

TEST(TrainingNorm, IsWhatNetworksTrainWith) {
  const Graph graph = parse_network(
      "onetap-net 1\nnetwork test\nx = input 3x32x32\nb = bn x\np = gap b\nf = linear p out=2\noutput f\n");
  GraphModule module(graph);
  module->train();
  const auto x = (torch::randn({128, 3, 32, 32}) + 1).contiguous(torch::MemoryFormat::ChannelsLast);
  module->forward(x);
  for (const auto& buffer : module->named_buffers()) {
    if (buffer.key() != "b.running_var") continue;
    const auto variance = x.to(torch::kFloat64).var(at::IntArrayRef{0, 2, 3}, /*unbiased=*/true);
    EXPECT_LT(worst_of(buffer.value(), 0.9 + 0.1 * variance), 5e-7);  // LibTorch: 2e-6
    return;
  }
  FAIL() << "no batch norm";
}

}  // namespace
}  // namespace onetap::nn
