// The fused step against LibTorch's autograd, step by step.
#include "onetap/fused/network.h"

#include "onetap/train/sgd.h"
#include "tests/fused/networks.h"
#include "tests/support/keep_centre.h"

#include <cmath>

namespace onetap::fused {
namespace {

struct Case {
  std::string name;
  std::string arch = "resnet8";
  int64_t width = 5;
  std::optional<Method> method;
  bool pad = false;
  bool nesterov = false;
  torch::Device device = torch::kCPU;
};

using testing::as_activations;
using testing::relative;

class FusedNetwork : public ::testing::TestWithParam<Case> {};

std::shared_ptr<Ops> ops_of(torch::Device device) {
  auto ops = device.is_cuda() ? cuda_ops() : reference_ops();
  return ops;
}

// And the next step starts from the same place: rounding would add up.
void compare_and_copy(const nn::NamedTensors& expected, const nn::NamedTensors& got, double tolerance, int step) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < expected.size(); ++i) {
    torch::Tensor tensor = got[i].second.detach();
    EXPECT_LT(relative(tensor.to(torch::kFloat64), expected[i].second.detach().to(torch::kFloat64)), tolerance)
        << expected[i].first << ", step " << step;
    tensor.copy_(expected[i].second);
  }
}

TEST_P(FusedNetwork, StepsAsAutogradDoes) {
  const Case& c = GetParam();
  if (c.device.is_cuda() && (!torch::cuda::is_available() || cuda_ops() == nullptr)) GTEST_SKIP() << "skipped: no GPU";
  set_gpu_arithmetic(/*tf32=*/false);
  const Graph graph = testing::small_network(c.arch, c.width, c.method);
  torch::manual_seed(3);
  nn::GraphModule plain(graph), fused_module(graph);
  nn::load_tensors(SafetensorsFile::parse(nn::tensor_bytes(nn::state_of(*plain)), "test"), nn::state_of(*fused_module),
                   "test");
  plain->to(c.device);
  fused_module->to(c.device);
  const SgdOptions sgd_options{0.9, c.nesterov, 1e-3};
  Sgd plain_sgd(*plain, sgd_options), fused_sgd(*fused_module, sgd_options);
  constexpr int64_t kSomeLayers = 500;  // weights: several times in every network here
  Network network(fused_module, fused_sgd.state(), {torch::kFloat32, c.pad, kSomeLayers}, ops_of(c.device));
  StepValues values;
  LossState loss;
  loss.sums = torch::zeros({2}, torch::TensorOptions(torch::kFloat64).device(c.device));
  loss.label_smoothing = 0.1;
  double expected_loss = 0;
  const double rate = 0.05;
  double nearest_corner = 0;
  testing::watch_corners(plain, nearest_corner);
  int clear_steps = 0;
  for (int step = 0; clear_steps < 4; ++step) {
    ASSERT_LT(step, 30) << "every step has a value at a ReLU's corner";
    const double temperature = 3.0 / (step + 1);
    const auto images = torch::randn({6, 3, 8, 8}).to(c.device);
    const auto labels = torch::randint(0, 5, {6}, torch::kInt64).to(c.device);

    plain->train();
    plain->set_temperature(temperature);
    plain_sgd.zero_grad();
    const auto plain_logits = plain->forward(images);
    ASSERT_TRUE(std::isfinite(nearest_corner)) << "no ReLU seen";
    const bool clear = nearest_corner > 2e-5;
    clear_steps += clear ? 1 : 0;
    const auto plain_loss = torch::nn::functional::cross_entropy(
        plain_logits, labels, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.1));
    plain_loss.backward();
    plain_sgd.step(rate);
    expected_loss += plain_loss.item<double>() * 6;

    values.rates = torch::tensor({rate, temperature}, torch::kFloat32).to(c.device);
    const auto padded = as_activations(images, network.input_channels());
    network.pack(values);
    const auto dlogits = ops_of(c.device)->loss(loss, network.forward(padded), labels, 6);
    const UpdateOptions update = {0.9, c.nesterov, 1e-3};
    if (step % 2 == 0) {
      network.backward(dlogits);
      network.update(values, update);
    } else {
      network.backward_and_update(dlogits, /*add=*/false, values, update);
    }

    EXPECT_NEAR(loss.sums[0].item<double>(), expected_loss, 1e-4 * expected_loss);
    const double tolerance = clear ? 1e-4 : 1e-1;
    compare_and_copy(nn::state_of(*plain), nn::state_of(*fused_module), tolerance, step);
    compare_and_copy(plain_sgd.state(), fused_sgd.state(), tolerance, step);
  }

  // And in a test: running statistics, hard taps.
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({6, 3, 8, 8}).to(c.device);
  plain->eval();
  const nn::ModeGuard plain_hard(plain, nn::AttentionMode::kHard), fused_hard(fused_module, nn::AttentionMode::kHard);
  network.pack_for_inference();
  const auto padded = as_activations(images, network.input_channels());
  EXPECT_LT(relative(network.infer(padded), plain->forward(images)), 1e-3);
}

std::vector<Case> cases() {
  static const MethodInfo& keep_centre = testing::add_keep_centre();
  const Method sal = sal_method(), faded = Method(keep_centre).set("fade", 0.5);
  std::vector<Case> all = {{"dense", "resnet8", 5, std::nullopt, false, false},
                           {"sal", "resnet8", 5, sal, false, false},
                           {"sal_padded", "resnet8", 5, sal, true, false},
                           {"sal_share2_nesterov", "resnet8", 6, sal_method(1, 2), true, true},
                           {"sal_taps2", "resnet8", 5, sal_method(2), false, false},
                           {"sal_taps3_share4_nesterov", "resnet8", 6, sal_method(3, 4), true, true},
                           {"no_kernels", "resnet8", 5, faded, true, true},
                           {"deep", "resnet20", 4, sal, true, false}};
  const size_t count = all.size();
  for (size_t i = 0; i < count; ++i) {
    Case c = all[i];
    c.name += "_cuda";
    c.device = torch::kCUDA;
    c.pad = true;
    all.push_back(c);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FusedNetwork, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace onetap::fused
